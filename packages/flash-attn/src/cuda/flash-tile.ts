import { RooflineError, checkObject, dependOn, describeValue } from '@roofline/tensor-core';

/** Queries and keys that a block of threads works on at a time. */
export interface FlashTile {
  readonly queries: number;
  readonly keys: number;
}

/** The queries of one warp's product, and the granularity of a tile. */
const step = 16;
const most = 256;
const mostWarps = 8;

let chosen: FlashTile | null = null;

/**
 * Makes forward passes on a GPU run on `flash_mma_forward.cu` with tiles of this size from now on, to measure tiles that would not be
 * chosen; null goes back to the choice. A pass whose GPU has no room for the tile throws a DeviceError. Throws a RooflineError (code
 * OPTION) for sizes that are not multiples of 16 up to 256, or more than 128 queries that are not a multiple of 32.
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

/** The warps of a tile: one for each 16 queries, or for each 32 where that would be more than eight. */
export function warpsOf({ queries }: FlashTile): number {
  const warps = queries / step;
  return warps <= mostWarps ? warps : warps / 2;
}
