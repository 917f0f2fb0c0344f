/**
 * Makes `static/`, what the service serves: the pages, their worklets, and the client as one module and as an npm package.
 *
 * `node build.mjs` writes it; `node build.mjs --compare` makes it elsewhere and fails if what is committed differs in a byte.
 */

import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';

import { build } from 'vite';

const WEB = dirname(fileURLToPath(import.meta.url));
const STATIC = join(WEB, 'static');
const ENTRIES = {
  studio: 'studio/src/main.ts',
  docs: 'studio/src/docs.ts',
  'capture-worklet': 'studio/src/worklets/capture-worklet.ts',
  'player-worklet': 'studio/src/worklets/player-worklet.ts',
  client: 'client/src/index.ts',
};
const COPIES = {
  'studio/index.html': 'index.html',
  'studio/docs.html': 'docs.html',
  'studio/icon.svg': 'icon.svg',
};

/** One file for each entry, with a name that stays: a page never has to find out what its parts are called today. */
async function bundle(name, entry, folder) {
  await build({
    configFile: false,
    root: WEB,
    logLevel: 'warn',
    publicDir: false,
    resolve: { alias: { 'mimi-client': join(WEB, 'client/src/index.ts') } },
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      modulePreload: false,
      cssCodeSplit: false,
      lib: { entry: join(WEB, entry), formats: ['es'], fileName: () => `${name}.js`, cssFileName: name },
    },
  });
}

/** The package, as `npm install` takes it. Stored, not compressed: zlib's bytes change with its version. */
function packClient(folder) {
  rmSync(join(WEB, 'client/dist'), { recursive: true, force: true });
  execFileSync(process.execPath, [join(WEB, 'node_modules/typescript/bin/tsc'), '-p', join(WEB, 'client')], {
    stdio: 'inherit',
  });
  const options = ['pack', '--silent', '--pack-destination', folder];
  const [name] = execFileSync('npm', options, { cwd: join(WEB, 'client'), encoding: 'utf8' })
    .trim()
    .split('\n')
    .slice(-1);
  const packed = gzipSync(gunzipSync(readFileSync(join(folder, name))), { level: 0 });
  packed[9] = 255;
  rmSync(join(folder, name));
  writeFileSync(join(folder, 'mimi-client.tgz'), packed);
}

async function make(folder) {
  mkdirSync(folder, { recursive: true });
  for (const [name, entry] of Object.entries(ENTRIES)) {
    await bundle(name, entry, folder);
  }
  for (const name of readdirSync(folder)) {
    writeFileSync(join(folder, name), `${readFileSync(join(folder, name), 'utf8').trimEnd()}\n`);
  }
  for (const [from, to] of Object.entries(COPIES)) {
    cpSync(join(WEB, from), join(folder, to));
  }
  packClient(folder);
}

const made = mkdtempSync(join(tmpdir(), 'mimi-web-'));
try {
  await make(made);
  if (process.argv.includes('--compare')) {
    const names = [...new Set([...readdirSync(made), ...readdirSync(STATIC)])].sort();
    const differing = names.filter((name) => {
      try {
        return !readFileSync(join(made, name)).equals(readFileSync(join(STATIC, name)));
      } catch {
        return true;
      }
    });
    if (differing.length > 0) {
      console.error(`static/ is not what the sources make: ${differing.join(', ')}. Run: npm run build`);
      process.exitCode = 1;
    } else {
      console.log(`static/ is what the sources make: ${names.length} files`);
    }
  } else {
    rmSync(STATIC, { recursive: true, force: true });
    cpSync(made, STATIC, { recursive: true });
  }
} finally {
  rmSync(made, { recursive: true });
}
