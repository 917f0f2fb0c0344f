/** Draws the REST calls from the service's own OpenAPI description. */

import './docs.css';

import { element, say } from './dom.ts';

type Content = Record<string, { example?: unknown }>;

interface Schema {
  type?: string;
  enum?: unknown[];
  minimum?: number;
  maximum?: number;
  default?: unknown;
}

interface Operation {
  summary?: string;
  description?: string;
  parameters?: { name: string; description?: string; schema?: Schema }[];
  requestBody?: { content: Content };
  responses: Record<string, { description: string; content?: Content }>;
}

interface Description {
  info: { version: string; description: string };
  paths: Record<string, Record<string, Operation>>;
}

function make(name: string, ...children: (Node | string)[]): HTMLElement {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/** Text with `code` in backquotes, paragraphs between empty lines. */
function paragraphs(text: string): HTMLElement[] {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => make('p', ...inline(paragraph)));
}

function inline(text: string): (Node | string)[] {
  return text.split(/`+([^`]+)`+/).map((piece, index) => (index % 2 ? make('code', piece) : piece));
}

function table(caption: string, headings: string[], rows: (Node | string)[][]): HTMLElement[] {
  const head = make('tr', ...headings.map((heading) => make('th', heading)));
  const body = rows.map((row) => make('tr', ...row.map((cell) => make('td', cell))));
  const framed = make('div', make('table', make('thead', head), make('tbody', ...body)));
  framed.className = 'scroll';
  framed.tabIndex = 0;
  framed.setAttribute('role', 'group');
  framed.setAttribute('aria-label', caption);
  return [make('h3', caption), framed];
}

function legal({ type, enum: words, minimum, maximum, default: fallback }: Schema = {}): string {
  const range = words ? words.join(', ') : `${type}${span(minimum, maximum)}`;
  return fallback === undefined ? range : `${range}; default ${fallback}`;
}

function span(least: number | undefined, most: number | undefined): string {
  return least === undefined && most === undefined ? '' : `, ${least ?? ''} .. ${most ?? ''}`;
}

function examples(content: Content): HTMLElement[] {
  return Object.entries(content)
    .filter(([, { example }]) => example !== undefined)
    .flatMap(([type, { example }]) => {
      const shown = make('pre', JSON.stringify(example));
      shown.tabIndex = 0;
      return [make('h3', `Example, ${type}`), shown];
    });
}

function article(path: string, method: string, call: Operation): HTMLElement {
  const badge = make('span', method.toUpperCase());
  badge.className = 'method';
  const shown = make('article', make('h2', badge, make('code', path)), ...paragraphs(call.description ?? call.summary ?? ''));
  shown.className = 'panel';
  const { parameters = [], requestBody, responses } = call;
  if (parameters.length > 0) {
    const rows = parameters.map(({ name, schema, description = '' }) => [make('code', name), legal(schema), description]);
    shown.append(...table('Query', ['name', 'legal values', 'meaning'], rows));
  }
  if (requestBody) {
    const types = Object.keys(requestBody.content).flatMap((type) => [make('code', type), ' ']);
    shown.append(make('h3', 'Body, of Content-Type'), make('p', ...types), ...examples(requestBody.content));
  }
  const answers = Object.entries(responses).map(([status, { description, content = {} }]) => [
    status,
    description,
    Object.keys(content).join(', '),
  ]);
  shown.append(...table('Answers', ['status', 'meaning', 'as'], answers));
  return shown;
}

async function load(): Promise<void> {
  try {
    const answer = await fetch(new URL('openapi.json', document.baseURI));
    const { info, paths } = (await answer.json()) as Description;
    say('model', `${info.version}, REST reference`);
    element('about', HTMLElement).replaceChildren(...paragraphs(info.description));
    const calls = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, call]) => article(path, method, call)),
    );
    element('calls', HTMLElement).replaceChildren(...calls);
  } catch (cause) {
    say('about', `The description of the calls could not be read: ${cause instanceof Error ? cause.message : cause}`);
  }
}

void load();
