// @ts-check
import { element, say } from './dom.js';
/** Draws the REST calls from the service's own OpenAPI description. */

/**
 * @typedef {Record<string, { example?: unknown }>} Content by media type
 * @typedef {{ name: string, in: string, required?: boolean, description?: string, schema?: Record<string, unknown> }} Parameter
 * @typedef {object} Operation
 * @property {string} [summary]
 * @property {string} [description]
 * @property {Parameter[]} [parameters]
 * @property {{ content: Content }} [requestBody]
 * @property {Record<string, { description: string, content?: Content }>} responses
 */

/**
 * @param {string} name of an element
 * @param {...(Node | string)} children
 */
function make(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

/**
 * Text with `code` in backquotes, paragraphs between empty lines.
 * @param {string} text
 * @returns {HTMLElement[]}
 */
function paragraphs(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => make('p', ...inline(paragraph)));
}

/** @param {string} text */
function inline(text) {
  return text.split(/`+([^`]+)`+/).map((piece, index) => (index % 2 ? make('code', piece) : piece));
}

/**
 * @param {string} caption
 * @param {string[]} headings
 * @param {(Node | string)[][]} rows
 */
function table(caption, headings, rows) {
  const head = make('tr', ...headings.map((heading) => make('th', heading)));
  const body = rows.map((row) => make('tr', ...row.map((cell) => make('td', cell))));
  const framed = make('div', make('table', make('thead', head), make('tbody', ...body)));
  framed.className = 'scroll';
  return [make('h3', caption), framed];
}

/** @param {Record<string, unknown>} [schema] */
function legal({ type, enum: words, minimum, maximum, default: fallback } = {}) {
  const range = Array.isArray(words) ? words.join(', ') : `${type}${span(minimum, maximum)}`;
  return fallback === undefined ? range : `${range}; default ${fallback}`;
}

/** @param {unknown} least @param {unknown} most */
function span(least, most) {
  return least === undefined && most === undefined ? '' : `, ${least ?? ''} .. ${most ?? ''}`;
}

/** @param {Content} [content] */
function media(content = {}) {
  return Object.keys(content).join(', ');
}

/** @param {Content} content */
function examples(content) {
  return Object.entries(content)
    .filter(([, { example }]) => example !== undefined)
    .flatMap(([type, { example }]) => {
      const shown = make('pre', JSON.stringify(example));
      shown.tabIndex = 0;
      return [make('h3', `Example, ${type}`), shown];
    });
}

/** @param {string} path @param {string} method @param {Operation} call */
function article(path, method, call) {
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
  const answers = Object.entries(responses).map(([status, { description, content }]) => [status, description, media(content)]);
  shown.append(...table('Answers', ['status', 'meaning', 'as'], answers));
  return shown;
}

async function load() {
  try {
    const answer = await fetch(new URL('openapi.json', document.baseURI));
    const { info, paths } = await answer.json();
    say('version', `${info.version}, REST reference`);
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
