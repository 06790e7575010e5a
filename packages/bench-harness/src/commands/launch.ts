import { defineCommand } from '../cli/command.ts';
import { asCalled } from '../cli/invocation.ts';

/** Flags go on as they are given: `roofline-launch` of @roofline/collectives, the same code, reads and checks them. */
const passedOn = ['nproc', 'nnodes', 'node-rank', 'rdzv'] as const;

export const launchCommand = defineCommand({
  flags: {
    nproc: { type: 'string', describe: 'Ranks on this machine' },
    nnodes: { type: 'string', describe: 'Machines, each with this command; 1 if not given' },
    'node-rank': { type: 'string', describe: 'Which of them this is; 0, the one of --rdzv, if not given' },
    rdzv: { type: 'string', describe: 'HOST:PORT where they meet; needed for several machines' },
  },
  examples: [
    ['roofline launch --nproc 4 -- train.js --steps 100', 'four ranks of a script on this machine'],
    [
      'roofline launch --nproc 8 --nnodes 2 --node-rank 0 --rdzv 10.0.0.1:29500 -- train.js',
      'the same on two, with ROOFLINE_STORE_TOKEN one secret on both',
    ],
  ],
  async run(args) {
    const { runLaunchCommand } = await import('@roofline/collectives');
    const flags = passedOn.flatMap((name) =>
      [args[name] ?? []].flat().flatMap((value) => [`--${name}`, value]),
    );
    // The words after -- come with the command's name, others in `script`.
    const words = [
      ...((args['script'] as unknown[] | undefined) ?? []),
      ...(args['_'] as unknown[]).slice(1),
    ];
    return await runLaunchCommand(
      [...flags, '--', ...words.map(String)],
      asCalled('Try `roofline launch --help`.'),
    );
  },
});
