// @ts-check

/**
 * Let a file be dropped anywhere on the page, as if it had been chosen.
 * @param {HTMLInputElement} input takes the file, and tells of it by `change`
 */
export function acceptDrops(input) {
  const show = (/** @type {boolean} */ on) => document.body.classList.toggle('dropping', on && !input.matches(':disabled'));
  addEventListener('dragover', (event) => {
    event.preventDefault();
    show(true);
  });
  addEventListener('dragleave', () => show(false));
  addEventListener('drop', (event) => {
    event.preventDefault();
    show(false);
    if (event.dataTransfer?.files.length && !input.matches(':disabled')) {
      input.files = event.dataTransfer.files;
      input.dispatchEvent(new Event('change', { bubbles: true }));
    }
  });
}
