import { renderMarkdown, type Table } from '@roofline/reports';
import { describe, expect, it } from 'vitest';
import { isPeerProduct } from '../../../src/benchmarks/profile/peer/peer-kernels.ts';
import {
  besidePeerTables,
  peerKernelTables,
  shortName,
  topKernelsTables,
} from '../../../src/benchmarks/profile/report/peer-tables.ts';
import { stepTables } from '../../../src/benchmarks/profile/report/step-times.ts';
import type { ProfileSettings } from '../../../src/benchmarks/profile/parameters.ts';
import type { PeerProfile } from '../../../src/benchmarks/profile/result.ts';
import { reportOfRecords } from '../../../src/report/report-of-records.ts';
import { interpretProfile, profileRecord, toyPeer, toyProfileResult } from '../../fixtures/profiles.ts';

const recordWith = (peer: PeerProfile | null, settings: Partial<ProfileSettings> = {}) =>
  profileRecord(settings, { result: { ...toyProfileResult, peer } });
const measured = interpretProfile(recordWith(toyPeer));
const alone = interpretProfile(recordWith(null));
const failed = interpretProfile(
  recordWith({ status: 'out-of-memory', error: { name: 'PeerError', message: 'no room in PyTorch' } }),
);

describe("our kernels next to PyTorch's", () => {
  it('are reported by phase and in total, a step', () => {
    const rows = besidePeerTables([measured])[0]!.rows;
    expect(rows.map(({ phase }) => phase)).toEqual(['forward', 'backward', 'other', 'all']);
    expect(rows[0]).toMatchObject({
      phase: 'forward',
      kernelMs: 0.018,
      peerMs: 0.036,
      ratio: 0.5,
      kernels: 3,
      peerKernels: 2,
      matmulShare: 12 / 18,
      peerMatmulShare: 20 / 36,
    });
    expect(rows[3]).toMatchObject({ kernels: 5, peerKernels: 4, peerMs: 0.08, ratio: 39 / 80 });
    expect(rows[3]!['peerMatmulShare']).toBeCloseTo(60 / 80, 10);
  });

  it('say why PyTorch has none, and nothing where it was not asked', () => {
    expect(besidePeerTables([alone])).toEqual([]);
    expect(topKernelsTables([alone, failed])).toEqual([]);
    expect(peerKernelTables(failed, 'kernels')).toEqual([]);
    const rows = besidePeerTables([failed, measured])[0]!.rows;
    expect(rows[0]).toMatchObject({ status: 'out-of-memory', error: 'no room in PyTorch' });
    expect(rows).toHaveLength(5);
    // Ours is reported all the same.
    const [{ rows: ours, columns }] = stepTables([failed]) as [Table];
    expect(ours).toHaveLength(1);
    expect(columns.map(({ key }) => key)).not.toContain('implementation');
  });

  it('are side by side, the longest first, with short names', () => {
    const rows = topKernelsTables([measured])[0]!.rows;
    expect(rows.map(({ name, peerName }) => [name, peerName])).toEqual([
      ['gemm', 'sm90_xmma_gemm_f32'],
      ['softmax_rows', 'vectorized_elementwise_kernel<4>(int)'],
      ['split', 'Memcpy DtoH'],
      ['[CUDA memcpy DtoH]', undefined],
    ]);
    expect(rows[0]).toMatchObject({
      ms: 0.03,
      instances: 2,
      peerMs: 0.06,
      peerInstances: 2,
      peerShare: 0.75,
    });
    expect(shortName(`void ${'x'.repeat(100)}`)).toHaveLength(48);
  });

  it("have PyTorch's own summary in the columns of Nsight Systems, of the selected phase", () => {
    const [table] = peerKernelTables(
      interpretProfile(recordWith(toyPeer, { phase: 'forward', range: 'attention.*' })),
      'pytorch',
    );
    expect(table!.columns.map(({ label }) => label)).toEqual([
      ...['Name', 'Time (%)', 'Total Time (ns)', 'Instances', 'Avg (ns)', 'Med (ns)', 'Min (ns)', 'Max (ns)'],
      ...['StdDev (ns)'],
    ]);
    expect(table!.title).toBe('Kernel summary of PyTorch 2.0.0: forward');
    expect(table!.caption).toContain('--range does not select here');
    expect(table!.rows).toHaveLength(2);
    expect(table!.rows[0]).toMatchObject({
      name: 'sm90_xmma_gemm_f32',
      totalNs: 40_000,
      instances: 2,
      stdNs: 0,
    });
  });

  it('are in the report and its summary', async () => {
    const report = await reportOfRecords([recordWith(toyPeer)]);
    expect(report.summary).toContain(
      'The kernels of a step take **0.49×** the time of those of PyTorch 2.0.0 eager.',
    );
    const text = renderMarkdown(report);
    for (const title of [
      'Kernel time vs PyTorch',
      'Kernel summary of PyTorch',
      'Instances by range add up',
    ]) {
      expect(text).toContain(title);
    }
    expect(renderMarkdown(await reportOfRecords([recordWith(failed.result!.peer)]))).toContain(
      'no room in PyTorch',
    );
  });
});

describe('kernel time over device time', () => {
  it('is reported as a sum and as busy time, for both', () => {
    const [ours, theirs] = stepTables([measured])[0]!.rows;
    expect(ours).toMatchObject({
      implementation: 'Roofline',
      kernelMs: 0.039,
      busyMs: 0.039,
      deviceMs: 0.105,
    });
    expect(theirs).toMatchObject({ implementation: 'PyTorch', kernelMs: 0.08, busyMs: 0.075, plainMs: 0.09 });
    expect(theirs!['sumShare']).toBeCloseTo(0.8, 10);
    expect(theirs!['busyShare']).toBeCloseTo(0.75, 10);
    expect(theirs!['idleShare']).toBeCloseTo(15 / 90, 10);
  });

  it('counts kernels that overlap once in the busy time', () => {
    const result = structuredClone(toyProfileResult);
    for (const { kernels } of result.steps) kernels.startUs.fill(10);
    const [ours] = stepTables([interpretProfile(profileRecord({}, { result }))])[0]!.rows;
    expect(ours).toMatchObject({ kernelMs: 0.039, busyMs: 0.02 });
  });
});

describe("PyTorch's matrix products", () => {
  it.each([
    'nvjet_tst_128x128_64x6_1x2_h_bz_coopA_NTT',
    'void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_tn_align1>(Params)',
    'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64',
    'void cublasLt::splitKreduce_kernel<32, 16, int, float>(Params)',
    'void gemv2T_kernel_val<int, int, float>(Params)',
    'ampere_sgemm_128x64_nn',
    'aten::mm',
    'aten::baddbmm',
    'aten::_addmm',
  ])('are recognised by name: %s', (name) => expect(isPeerProduct({ name })).toBe(true));

  it.each([
    'void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)',
    'void (anonymous namespace)::softmax_warp_forward<float, float, float, 8>(float*)',
    'Memcpy DtoD (Device -> Device)',
    'aten::mul',
    'aten::_softmax',
  ])('and the rest is not: %s', (name) => expect(isPeerProduct({ name })).toBe(false));
});
