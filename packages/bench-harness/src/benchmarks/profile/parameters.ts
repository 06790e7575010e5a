import { z } from 'zod';
import { peerSetting } from '../../peer/peer-setting.ts';
import { e2eParameters, type E2eCell } from '../e2e/parameters.ts';

export const phases = ['forward', 'backward', 'optimizer', 'all'] as const;
export type PhaseChoice = (typeof phases)[number];

/** The sweep of the end-to-end benchmark, and what is reported of each step. */
export const profileParameters = e2eParameters.extend({
  phase: z.enum(phases),
  peer: peerSetting.default(null),
  /** Only kernels inside ranges whose name this pattern matches; null for all. `*` stands for any text. */
  range: z.string().nullable(),
});
export type ProfileParameters = z.infer<typeof profileParameters>;

export const profileSettings = profileParameters.pick({
  warmup: true,
  steps: true,
  seed: true,
  phase: true,
  range: true,
  peer: true,
});
export type ProfileSettings = z.infer<typeof profileSettings>;

export type ProfileCell = E2eCell;
