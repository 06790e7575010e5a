import { launch } from '@roofline/collectives';
import { rankScript } from '../support/run-ranks.ts';

// A program that launches ranks, and ends of an error of its own as soon as both are there.

let ready = 0;
await launch({
  processes: 2,
  script: rankScript('misbehave'),
  args: ['waits'],
  write(_, line) {
    console.log(line);
    if (++ready === 2) throw new Error('the program’s own');
  },
});
