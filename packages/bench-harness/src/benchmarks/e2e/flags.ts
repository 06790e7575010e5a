import { attentionsOf } from '../../attention/kinds.ts';
import type { Flag } from '../../cli/command.ts';
import { askedPeer, peerChoice } from '../../cli/flags/peer-flag.ts';
import { settingsBy, sweptBy, sweptFlagsOf } from '../../cli/flags/parameter-flags.ts';
import type { GivenArguments } from '../../cli/flags/parameter-flags.ts';
import { showWhile } from '../../cli/show-while.ts';
import { UsageError } from '../../errors.ts';
import { executionsOf } from '../../execution/kinds.ts';
import type { NamedModel } from '../../model/shape.ts';
import type { Parameters } from '../../parameters/parameter.ts';
import { peerNames, peerTitles, type PeerName } from '../../peer/kinds.ts';
import { findStepPeers, type PeerSetting, type StepPeersSetting } from '../../peer/peer-setting.ts';
import { ownSwept, stepSwept } from './parameters.ts';

/** The flags of swept steps of ours alone, besides their model. */
export const ownStepFlags = sweptFlagsOf(ownSwept);

/** The same with a peer's side. */
export const stepFlags = sweptFlagsOf(stepSwept);

export const torchFlag = {
  peer: {
    ...peerChoice,
    describe: 'Run the same work in PyTorch in turn with ours (Python by ROOFLINE_PYTHON)',
  },
} as const;

/** One of them with changes. */
export function changedFlag(name: string, changes: Partial<Flag>): Flag {
  return { ...stepFlags[name]!, ...changes };
}

/** The sweep of steps that the flags ask for, with settings of these. */
export function stepsBy<const Settings extends Parameters>(
  args: GivenArguments,
  model: readonly NamedModel[],
  settings: Settings,
) {
  return { model, ...sweptBy(stepSwept, args), ...settingsBy(settings, args) };
}

/** PyTorch, where the flags ask for it. Throws UsageError where it cannot be had. */
export async function choosePeer(args: GivenArguments): Promise<PeerSetting> {
  const asked = args['peer'] !== undefined;
  checkPeerWays(args, asked ? ['torch'] : [], ['torch']);
  return askedPeer(args);
}

/** The peers that the flags of e2e ask for. Throws UsageError where they cannot be had. */
export async function choosePeers(args: GivenArguments): Promise<StepPeersSetting> {
  const asked = (args['peer'] ?? []) as readonly PeerName[];
  checkPeerWays(args, asked, peerNames);
  if (asked.length === 0) return null;
  const names = asked.map((name) => peerTitles[name]).join(' and ');
  return showWhile(`Looking for ${names}`, () => findStepPeers(asked));
}

/** Throws a UsageError for a way to attend or to run of a peer that was not asked for. */
function checkPeerWays(args: GivenArguments, asked: readonly PeerName[], offered: readonly PeerName[]): void {
  const flags = { 'peer-attention': attentionsOf, 'peer-execution': executionsOf };
  for (const [flag, waysOf] of Object.entries(flags)) {
    for (const way of (args[flag] ?? []) as readonly string[]) {
      const peer = peerNames.find((name) => (waysOf[name] as readonly string[]).includes(way))!;
      if (asked.includes(peer)) continue;
      if (!offered.includes(peer)) {
        throw new UsageError(`--${flag} ${way} is ${peerTitles[peer]}'s, which only roofline e2e runs.`);
      }
      throw new UsageError(
        asked.length === 0
          ? `--${flag} is that of a peer: add --peer ${peer}.`
          : `--${flag} ${way} is ${peerTitles[peer]}'s: make it --peer ${[...asked, peer].join(',')}.`,
      );
    }
  }
}
