import type { Flag } from '../../cli/command.ts';
import { peerChoice } from '../../cli/flags/choices.ts';
import { settingFlagsOf, settingsBy, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import type { GivenArguments } from '../../cli/flags/parameter-flags.ts';
import { showWhile } from '../../cli/show-while.ts';
import { UsageError } from '../../errors.ts';
import type { NamedModel } from '../../model/shape.ts';
import { findPeer, type PeerSetting } from '../../peer/peer-setting.ts';
import { ownSwept, stepSettings, stepSwept } from './parameters.ts';

/** The flags of steps of ours alone, besides their model. */
export const ownStepFlags = { ...sweptFlagsOf(ownSwept), ...settingFlagsOf(stepSettings) };

/** The same with a peer's side. */
export const stepFlags = {
  ...{ ...sweptFlagsOf(stepSwept), ...settingFlagsOf(stepSettings) },
  peer: {
    ...peerChoice,
    describe: 'Run the same work in PyTorch in turn with ours (Python by ROOFLINE_PYTHON)',
  },
};

/** One of them with changes. */
export function changedFlag(name: string, changes: Partial<Flag>): Flag {
  return { ...(stepFlags as Readonly<Record<string, Flag>>)[name]!, ...changes };
}

/** The sweep of steps that the flags ask for. */
export function stepsBy(args: GivenArguments, model: readonly NamedModel[]) {
  return { model, ...sweptBy(stepSwept, args), ...settingsBy(stepSettings, args) };
}

/** The peer that the flags ask for. Throws UsageError where it cannot be had. */
export async function choosePeer(args: GivenArguments): Promise<PeerSetting> {
  if (args['peer'] !== undefined) return showWhile('Looking for PyTorch', findPeer);
  const given = ['peer-attention', 'peer-execution'].find((name) => args[name] !== undefined);
  if (given !== undefined) throw new UsageError(`--${given} is that of a peer: add --peer torch.`);
  return null;
}
