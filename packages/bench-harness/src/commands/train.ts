import { defineCommand } from '../cli/command.ts';
import { EXIT } from '../errors.ts';
import { trainFlags } from '../train/train-flags.ts';

export const trainCommand = defineCommand({
  flags: trainFlags,
  examples: [
    ['roofline train --data text.txt --size tiny --out runs/a', 'by bytes, on the best device here'],
    ['roofline train --resume runs/a --steps 4000', 'goes on where it was'],
    [
      'roofline train --data text.txt --out runs/b --nproc 4 --mode zero1',
      'on four ranks, with GPUs for all or on the CPU',
    ],
    ['roofline train --config run.yaml --lr 1e-3', 'flags of a file, with one in their place'],
    ['roofline generate --checkpoint runs/a --prompt "The "', 'lets it write'],
  ],
  async run(args) {
    const { prepareTraining } = await import('../train/prepare.ts');
    const { train } = await import('../train/train.ts');
    using watch = await import('../cli/interruption.ts').then(({ watchInterruption }) => watchInterruption());
    const prepared = await prepareTraining(args, watch.signal);
    if (prepared === null) return EXIT.interrupted;
    using training = prepared;
    return await train(training, { signal: watch.signal, json: args.json });
  },
});
