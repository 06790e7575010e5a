import { defineBenchmark } from '../define-benchmark.ts';
import { tileParameters, tileResult, tileSweep } from './parameters.ts';
import { tileFindings, tilePlots, tileTable } from './report.ts';

/** How long FlashAttention's forward pass takes by the size of its tiles, and what each takes of a multiprocessor. */
export const tilesBenchmark = defineBenchmark({
  name: 'tiles',
  title: 'Tiles of FlashAttention',
  ...tileSweep,
  cellParameters: tileParameters,
  result: tileResult,
  flashAttention: ({ tileQueries, tileKeys, ...shape }) => ({
    ...shape,
    tile: { queries: tileQueries, keys: tileKeys },
  }),
  sharesProcess: () => true,
  samplesMs: (result) => (result.status === 'ok' ? result.samplesMs : []),
  table: tileTable,
  findings: [tileFindings],
  sections: [
    {
      id: 'tile-times',
      title: 'Forward pass by tile',
      text: [
        'On a GPU by flash_mma_forward.cu, the kernel for every GPU from compute capability 8.0 on, each block with a multiprocessor to ' +
          'itself; on the CPU by the tiled algorithm in tensor ops.',
      ],
      blocks: [(cells) => [tileTable(cells)], tilePlots],
    },
  ],
});
