import { findPeer, type PeerSetting } from '../../peer/peer-setting.ts';
import { showWhile } from '../show-while.ts';
import { choiceOf } from './choices.ts';

export const peerChoice = choiceOf('peer', ['torch']);

/** PyTorch, where --peer asks for it. Throws UsageError where it cannot be had. */
export async function askedPeer({ peer }: { readonly peer?: unknown }): Promise<PeerSetting> {
  return peer === undefined ? null : showWhile('Looking for PyTorch', findPeer);
}
