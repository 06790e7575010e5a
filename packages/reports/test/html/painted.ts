import { parseHTML } from 'linkedom';
import { renderHtml } from '../../src/index.ts';
import type { Block } from '../../src/index.ts';
import { joinModules } from '../../src/template.ts';
import { sampleReport } from '../fixtures.ts';

/** A rectangle that a chart fills, and by which variable of the page's style. */
export interface Painted {
  fill: string;
  height: number;
}

/** What the script of a chart 1000 pixels wide paints first, without a browser: on a canvas that only listens. */
export function paintedBy(script: 'timeline.js' | 'allocations.js', block: Block): Painted[] {
  const { document } = parseHTML(
    renderHtml(sampleReport({ sections: [{ id: 's', title: 'S', blocks: [block] }] })),
  );
  const painted: Painted[] = [];
  const [frame, canvas] = [document.querySelector('.canvas')!, document.querySelector('canvas')!];
  Object.defineProperty(frame, 'clientWidth', { value: 1000 });
  Object.assign(canvas, { getContext: () => listeningContext(painted) });
  class Observer {
    observe() {}
  }
  const page = {
    ...{ document, devicePixelRatio: 1, ResizeObserver: Observer, MutationObserver: Observer },
    matchMedia: () => ({ addEventListener: () => {} }),
    addEventListener: () => {},
    getComputedStyle: ({ style }: { style: unknown }) => style,
    requestAnimationFrame: () => {},
  };
  new Function(...Object.keys(page), joinModules(['chart.js', script]))(...Object.values(page));
  return painted;
}

/** As a canvas, it ignores a colour that is none; whatever else is drawn goes unrecorded. */
function listeningContext(painted: Painted[]): object {
  let fill = '#000000';
  return new Proxy(
    {},
    {
      get: (_, name) => {
        if (name === 'fillRect') return (...box: number[]) => painted.push({ fill, height: box[3]! });
        return name === 'measureText' ? () => ({ width: 10 }) : () => {};
      },
      set: (_, name, value) => {
        if (name === 'fillStyle' && typeof value === 'string') fill = value;
        return true;
      },
    },
  );
}
