import { z } from 'zod';
import { parameter } from '../../parameters/parameter.ts';
import type { ValuesOf } from '../../parameters/sweep.ts';
import { peerSetting } from '../../peer/peer-setting.ts';
import { stepSettings, type E2eCell } from '../e2e/parameters.ts';

export const phases = ['forward', 'backward', 'optimizer', 'all'] as const;
export type PhaseChoice = (typeof phases)[number];

/** How steps are profiled, and what is reported of each. */
export const profileSettings = {
  ...stepSettings,
  phase: parameter(z.enum(phases)),
  /** Only kernels inside ranges whose name this pattern matches; null for all. `*` stands for any text. */
  range: parameter(z.string().nullable()),
  peer: parameter(peerSetting.default(null)),
};
export type ProfileSettings = ValuesOf<typeof profileSettings>;
export type ProfileCell = E2eCell;
