/** The page's elements by their ids, and what is said in them. */

/** An element that the page must have. */
export function element<Kind extends Element>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) {
    throw new TypeError(`the page has no ${kind.name} #${id}`);
  }
  return found;
}

export function say(id: string, text: string): void {
  const found = element(id, HTMLElement);
  if (found.textContent !== text) {
    found.textContent = text;
  }
}

export function show(id: string, isShown: boolean): void {
  element(id, HTMLElement).hidden = !isShown;
}

export function onClick(id: string, act: () => void): void {
  element(id, HTMLButtonElement).addEventListener('click', act);
}

/** The value of the radio button that is chosen. */
export function chosen(name: string): string {
  return document.querySelector<HTMLInputElement>(`input[name=${name}]:checked`)?.value ?? '';
}

export function choose(name: string, value: string): void {
  const found = document.querySelector<HTMLInputElement>(`input[name=${name}][value=${value}]`);
  if (found) {
    found.checked = true;
  }
}
