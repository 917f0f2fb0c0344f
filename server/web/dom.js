// @ts-check
/** Reaching into the page. */

/**
 * @template {HTMLElement} Kind
 * @param {string} id of an element that the page has
 * @param {new () => Kind} kind
 * @returns {Kind}
 * @throws {TypeError} there is none of that kind
 */
export function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new TypeError(`#${id} is no ${kind.name}`);
  }
  return found;
}

/**
 * Show a text; one that is there already is left alone, so that nothing is read out twice.
 * @param {string} id
 * @param {string} text
 */
export function say(id, text) {
  const where = element(id, HTMLElement);
  if (where.textContent !== text) {
    where.textContent = text;
  }
}
