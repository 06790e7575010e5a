import { afterEach, expect, it, vi } from 'vitest';
import { renderPng, ReportError } from '../../src/index.ts';
import { throughput } from '../fixtures.ts';

afterEach(() => {
  vi.doUnmock('@resvg/resvg-js');
  vi.resetModules();
});

/** Width and height are in the header chunk of a PNG. */
function sizeOf(png: Uint8Array): [number, number] {
  const view = new DataView(png.buffer, png.byteOffset);
  return [view.getUint32(16), view.getUint32(20)];
}

async function drawOrSkip(skip: (note: string) => void, scale: number): Promise<Uint8Array | undefined> {
  try {
    return await renderPng(throughput({ references: [] }), { width: 300, height: 200, scale });
  } catch (error) {
    if (!(error instanceof ReportError)) throw error;
    skip(error.message);
    return undefined;
  }
}

it('draws a PNG of the size asked for, times the scale', async ({ skip }) => {
  const png = await drawOrSkip(skip, 2);
  expect([...png!.subarray(1, 4)]).toEqual([...Buffer.from('PNG')]);
  expect(sizeOf(png!)).toEqual([600, 400]);
});

it('says what is missing where resvg has no binary', async () => {
  vi.doMock('@resvg/resvg-js', () => {
    throw new Error('Cannot find native binding');
  });
  await expect(renderPng(throughput())).rejects.toThrow(/binary of @resvg\/resvg-js .* use renderSvg/);
});

it('says so where there is no font to write with', async () => {
  vi.doMock('@resvg/resvg-js', () => ({
    Resvg: class {
      getBBox(): undefined {}
    },
  }));
  await expect(renderPng(throughput())).rejects.toThrow(/found no font: install one/);
});
