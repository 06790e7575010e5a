import { z } from 'zod';
import { parameter, withFlag } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import { stepSettings, type E2eCell } from '../e2e/parameters.ts';

export const phases = ['forward', 'backward', 'optimizer', 'all'] as const;
export type PhaseChoice = (typeof phases)[number];

/** How steps are profiled, and what is reported of each. */
export const profileSettings = {
  warmup: withFlag(stepSettings.warmup, { default: '3' }),
  steps: withFlag(stepSettings.steps, { default: '3', describe: 'Steps to profile' }),
  seed: stepSettings.seed,
  phase: parameter(z.enum(phases), {
    flag: { default: 'all', describe: 'Only the kernels of this phase' },
  }),
  /** Only kernels inside ranges whose name this pattern matches; null for all. `*` stands for any text. */
  range: parameter(z.string().nullable()),
  peer: parameter(peerSetting.default(null)),
};
export type ProfileSettings = ValuesOf<typeof profileSettings>;
export type ProfileCell = E2eCell;
