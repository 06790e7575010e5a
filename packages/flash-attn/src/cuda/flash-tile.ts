import { RooflineError, checkObject, dependOn, describeValue } from '@roofline/tensor-core';

/** Queries and keys that a block of threads works on at a time. */
export interface FlashTile {
  readonly queries: number;
  readonly keys: number;
}

const step = 16;
const most = 256;

let chosen: FlashTile | null = null;

/**
 * From now on forward passes on a GPU run on `flash_mma_forward.cu` with tiles of this size, to see what others than the chosen ones
 * would take; null gives the choice back. A tile that a GPU has no room for throws a DeviceError as the pass runs. Throws a
 * RooflineError (code OPTION) for sizes that are no multiples of 16 up to 256, queries above 128 of 32.
 */
export function setFlashTile(tile: FlashTile | null): void {
  if (tile !== null) checkTile('setFlashTile', tile);
  chosen = tile === null ? null : { queries: tile.queries, keys: tile.keys };
}

/** The tile that forward passes run with; null where each call chooses its own. */
export function getFlashTile(): FlashTile | null {
  return dependOn(readChosen);
}

function readChosen(): FlashTile | null {
  return chosen;
}

export function checkTile(name: string, tile: FlashTile): void {
  checkObject(name, 'the tile', tile);
  for (const side of ['queries', 'keys'] as const) {
    const length = tile[side];
    if (Number.isInteger(length) && length % step === 0 && length > 0 && length <= most) continue;
    throw new RooflineError(
      'OPTION',
      `${name}: a tile's ${side} must be a multiple of ${step} up to ${most}, not ${describeValue(length)}.`,
    );
  }
  if (tile.queries <= step * mostWarps || tile.queries % (2 * step) === 0) return;
  throw new RooflineError(
    'OPTION',
    `${name}: more than ${step * mostWarps} queries must be a multiple of ${2 * step}, not ${tile.queries}.`,
  );
}

const mostWarps = 8;

/** The warps of a tile: one for each 16 queries, up to eight, which then have several times 16 each. */
export function warpsOf({ queries }: FlashTile): number {
  const rows = queries / step;
  return rows <= mostWarps ? rows : Math.max(...[4, 5, 6, 7, 8].filter((warps) => rows % warps === 0));
}
