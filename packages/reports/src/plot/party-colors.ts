import type { Palette } from './palette.ts';

/** One who is compared with. */
type Peer = 'torch' | 'jax';

/** Places in the palette. */
const OURS = 0;
const PEERS: Readonly<Record<Peer, number>> = { torch: 1, jax: 3 };
/** What is not measured of anybody. */
const FLOOR = 5;
/** Series that differ by what was done, not by who did it. */
const WITHOUT_PEERS = [OURS, 2, 4, 5, 6, 7];

function peerOf(name: string): Peer | null {
  if (/^jax\b/i.test(name)) return 'jax';
  return /^(py)?torch\b/i.test(name) ? 'torch' : null;
}

/**
 * One colour names one peer, on every page: JAX's is the fourth, PyTorch's, and that of the strongest of several, the second. What
 * is no peer, as a float32 step is, has that of text.
 */
export function partyColor(name: string, palette: Palette): string {
  const peer = /\bpeer$/i.test(name) ? 'torch' : peerOf(name);
  return peer === null ? palette.ink : palette.series[PEERS[peer]]!;
}

/**
 * The places in the palette of series by their names: next to a peer's, all others are ours, but for a floor. Where there is no
 * peer, each has a place of its own, and none that of a peer.
 */
export function partyColors(names: readonly string[]): number[] {
  const hasPeers = names.some((name) => peerOf(name) !== null);
  let others = 0;
  return names.map((name) => {
    const peer = peerOf(name);
    if (peer !== null) return PEERS[peer];
    if (/^floor\b/i.test(name)) return FLOOR;
    return hasPeers ? OURS : WITHOUT_PEERS[others++ % WITHOUT_PEERS.length]!;
  });
}
