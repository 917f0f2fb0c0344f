/** A real service for the tests: the command `mimi`, or what MIMI names. */

import { spawn, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, connect, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MIMI = process.env['MIMI'] ?? 'mimi';
const STARTED = /serves on (https?:\/\/[\w.:]+)/;
const START_TIMEOUT_MS = 60_000;

export class Service {
  readonly url: string;
  readonly process: ChildProcess;

  constructor(url: string, process: ChildProcess) {
    this.url = url;
    this.process = process;
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  /** End it, in order or at once. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const exited = new Promise((resolve) => this.process.once('exit', resolve));
      this.process.kill(signal);
      await exited;
    }
  }
}

export async function startService(options: string[] = [], environment: Record<string, string> = {}): Promise<Service> {
  const child = spawn(MIMI, ['serve', '--model', 'default', '--port', '0', ...options], {
    env: { ...process.env, ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    const look = (data: Buffer) => {
      said += data;
      const found = STARTED.exec(said);
      found?.[1] && resolve(found[1]);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', () => reject(new Error(`the service did not start:\n${said}`)));
    setTimeout(() => reject(new Error(`the service did not start in time:\n${said}`)), START_TIMEOUT_MS).unref();
  });
  return new Service(url, child);
}

/** A folder for snapshots, gone with the tests. */
export function storeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'mimi-client-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A port that connections can be cut at: what goes through it reaches a service that may be another by then. */
export class Cutter {
  port: number;
  accepted = 0;
  #server: Server;
  #sockets = new Set<Socket>();
  #url = '';

  static async open(port: number): Promise<Cutter> {
    const cutter = new Cutter(port);
    await new Promise<void>((resolve) => cutter.#server.listen(0, '127.0.0.1', resolve));
    cutter.#url = `http://127.0.0.1:${(cutter.#server.address() as { port: number }).port}`;
    return cutter;
  }

  private constructor(port: number) {
    this.port = port;
    this.#server = createServer((inner) => {
      this.accepted += 1;
      const outer = connect(this.port, '127.0.0.1');
      for (const [one, other] of [
        [inner, outer],
        [outer, inner],
      ] as const) {
        this.#sockets.add(one);
        one.pipe(other);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.#sockets.delete(one);
          other.destroy();
        });
      }
    });
  }

  get url(): string {
    return this.#url;
  }

  /** Cut every connection, as a network does. */
  cut(): void {
    this.#sockets.forEach((socket) => socket.resetAndDestroy());
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** Reproducible noise with some life in it, 16 bits. */
export function speechLike(samples: number, seed = 7): Int16Array<ArrayBuffer> {
  let state = seed;
  return Int16Array.from({ length: samples }, (_, at) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const noise = state / 2 ** 32 - 0.5;
    const seconds = at / 24_000;
    const voice = Math.sin(2 * Math.PI * (180 + 60 * Math.sin(3 * seconds)) * seconds) * (0.5 + 0.4 * Math.sin(7 * seconds));
    return Math.round(16_000 * (0.6 * voice + 0.2 * noise));
  });
}
