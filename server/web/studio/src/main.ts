import './studio.css';

import { checkBrowser } from './audio.ts';
import { element, say } from './dom.ts';
import { drawHero } from './hero.ts';
import { listenToPage } from './page.ts';
import { Service } from './service.ts';
import { Studio } from './studio.ts';

const service = new Service(document.baseURI);
const studio = new Studio(service);

/** For a look inside, from the browser's console or a test; changes nothing. */
Object.defineProperty(globalThis, 'mimi', { value: studio.inside });

const hero = element('hero', HTMLCanvasElement);
new ResizeObserver(() => drawHero(hero)).observe(hero);

/** Ask what the service runs; without that nothing can be started. */
async function ask(): Promise<void> {
  try {
    const model = await service.facts();
    say('model', `${model.name} · ${model.weight_class}, ${model.numerics} numerics · up to ${model.levels} levels`);
    studio.use(model);
    checkBrowser();
    studio.refuse(null);
  } catch (cause) {
    studio.refuse(cause);
  }
}

listenToPage(studio);
studio.askAgain = (key) => {
  service.use(key);
  void ask();
};
void ask();
