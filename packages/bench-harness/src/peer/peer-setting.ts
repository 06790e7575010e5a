import { z } from 'zod';
import { peerNames, type PeerName } from './kinds.ts';

/** PyTorch and its version, to run in turn with ours; null for only ours. */
export const peerSetting = z.object({ name: z.literal('torch'), version: z.string() }).nullable();
export type PeerSetting = z.infer<typeof peerSetting>;

const stepPeer = z.object({ name: z.enum(peerNames), version: z.string() });
/** A peer of steps, or several, each of which has cells of its own; null for none. */
export const stepPeersSetting = z.union([stepPeer, z.array(stepPeer).min(2)]).nullable();
export type StepPeersSetting = z.infer<typeof stepPeersSetting>;

/** Finds the interpreter once; the cells, which inherit the environment, then take the same one. Throws UsageError. */
export async function findPeer(): Promise<PeerSetting> {
  const [version] = await findVersions(['torch']);
  return { name: 'torch', version: version! };
}

/** The same for the peers of steps, of which one interpreter has to have all. */
export async function findStepPeers(names: readonly PeerName[]): Promise<StepPeersSetting> {
  const versions = await findVersions(names);
  const peers = names.map((name, index) => ({ name, version: versions[index]! }));
  return peers.length === 1 ? peers[0]! : peers;
}

async function findVersions(names: readonly PeerName[]): Promise<readonly string[]> {
  const { findPython } = await import('./find-python.ts');
  const { executable, versions } = await findPython(names);
  process.env['ROOFLINE_PYTHON'] = executable;
  return versions;
}
