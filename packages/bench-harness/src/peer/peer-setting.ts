import { z } from 'zod';

/** PyTorch and its version, to run in turn with ours; null for only ours. */
export const peerSetting = z.object({ name: z.literal('torch'), version: z.string() }).nullable();
export type PeerSetting = z.infer<typeof peerSetting>;

/** Finds the interpreter once; the cells, which inherit the environment, then take the same one. Throws UsageError. */
export async function findPeer(): Promise<PeerSetting> {
  const { findTorchPython } = await import('./find-python.ts');
  const { executable, torchVersion } = await findTorchPython();
  process.env['ROOFLINE_PYTHON'] = executable;
  return { name: 'torch', version: torchVersion };
}
