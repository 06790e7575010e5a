// Is alone in a process: a stand-in for NVRTC's library stays loaded.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterEach, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { compileKernels } from '../../src/nvrtc/compile-kernels.ts';
import { KernelBuilder } from '../../src/nvrtc/compile.ts';
import { loadNvrtc } from '../../src/nvrtc/nvrtc.ts';
import { DeviceError, KernelCompileError } from '../../src/base/errors.ts';
import { hostCompilerVersion } from '../../src/testing/emulated-compiler.ts';
import { standInForNvrtc } from './stand-in-for-nvrtc.ts';

// On a stand-in for NVRTC whose images tell what they were compiled from: each thread loads it as it would the real one.
describe.skipIf(!hostCompilerVersion())('compileKernels (needs gcc)', () => {
  let folder: string;

  beforeAll(standInForNvrtc);

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'roofline-kernels-'));
    process.env.ROOFLINE_CACHE_DIR = folder;
  });

  afterEach(() => {
    delete process.env.ROOFLINE_CACHE_DIR;
    rmSync(folder, { recursive: true });
  });

  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return pathToFileURL(join(folder, name));
  };
  const cached = () => readdirSync(join(folder, 'kernels'));
  /** A compiler that must not be asked. */
  const launchPath = () =>
    new KernelBuilder('sm_90a', {
      loadCompiler: () => ({
        version: loadNvrtc().version,
        compile: () => expect.fail('the cache has no such kernel'),
      }),
    });

  it('compiles variants where a launch finds them', async () => {
    const source = file('many.cu', '#include "prelude.cuh"\n');
    const kernels = Array.from({ length: 7 }, (_, i) => ({ source, defines: { SIZE: i, ELEMENT: 'float' } }));
    expect(await compileKernels([...kernels, { source }], 90, { threads: 3 })).toBe(8);
    expect(cached()).toHaveLength(8);
    const image = Buffer.from(launchPath().buildFile(source, kernels[6]!.defines)).toString();
    expect(image).toContain('option --define-macro=SIZE=6\noption --define-macro=ELEMENT=float');
    expect(image).toContain('option --gpu-architecture=sm_90a');
    launchPath().buildFile(source);
  });

  it('leaves what the cache has, and takes what compiles alike once', async () => {
    const [source, same] = [file('one.cu', '// one'), file('same.cu', '// one')];
    const progress: [number, number][] = [];
    const onProgress = (...counts: [number, number]) => void progress.push(counts);
    const kernels = [{ source }, { source: same }, { source, defines: { N: 1 } }];
    expect(await compileKernels(kernels.slice(0, 2), 90, { onProgress })).toBe(1);
    expect(await compileKernels(kernels, 90, { onProgress })).toBe(1);
    expect(await compileKernels(kernels, 90, { onProgress })).toBe(0);
    expect(progress).toEqual([
      [0, 1],
      [1, 1],
      [0, 1],
      [1, 1],
    ]);
    expect(await compileKernels([], 90)).toBe(0);
  });

  it('compiles for the architecture of a compute capability', async () => {
    const source = file('k.cu', '// k');
    expect(await compileKernels([{ source }], 90)).toBe(1);
    expect(await compileKernels([{ source }], 86)).toBe(1);
    await expect(compileKernels([{ source }], 75)).rejects.toThrow(/7\.5; 8\.0 \(Ampere\) or newer/);
  });

  it('compiles again what lies damaged in the cache', async () => {
    const source = file('k.cu', '// k');
    await compileKernels([{ source }], 90);
    const path = join(folder, 'kernels', cached()[0]!);
    writeFileSync(path, readFileSync(path).subarray(1));
    expect(await compileKernels([{ source }], 90)).toBe(1);
    launchPath().buildFile(source);
  });

  it.each([1, 4])(
    'with %i threads throws the error of the first kernel that does not compile',
    async (threads) => {
      const good = file('good.cu', '// good');
      const [broken, later] = [file('broken.cu', '// broken'), file('later.cu', '// broken later')];
      const attempt = compileKernels([{ source: good }, { source: broken }, { source: later }], 90, {
        threads,
      });
      const error = await attempt.catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(KernelCompileError);
      expect(error).toMatchObject({ source: '// broken', log: expect.stringContaining('why?') as string });
      expect((error as Error).message).toMatch(/^Kernel broken does not compile/);
      launchPath().buildFile(good);
    },
  );

  it('names a header that is missing', async () => {
    const source = file('k.cu', '#include "nowhere.cuh"\n');
    await expect(compileKernels([{ source }], 90)).rejects.toThrow(/nowhere\.cuh/);
  });

  it('throws where nothing can be kept', async () => {
    const source = file('k.cu', '// k');
    process.env.ROOFLINE_CACHE_DIR = fileURLToPath(source);
    await expect(compileKernels([{ source }], 90)).rejects.toThrow(DeviceError);
    await expect(compileKernels([{ source }], 90)).rejects.toThrow(/k\.cu\/kernels.*ROOFLINE_CACHE_DIR/);
  });

  it('rejects with what onProgress throws, and compiles no more', async () => {
    const kernels = Array.from({ length: 5 }, (_, i) => ({ source: file(`k${i}.cu`, `// k${i} sleeps 50`) }));
    const onProgress = (compiled: number) => {
      if (compiled > 0) throw new TypeError('mine');
    };
    await expect(compileKernels(kernels, 90, { threads: 1, onProgress })).rejects.toThrow(
      new TypeError('mine'),
    );
    expect(cached().length).toBeLessThan(5);
  });

  it('throws where a kernel cannot be kept', async () => {
    const source = file('k.cu', '// k');
    await compileKernels([{ source }], 90);
    const path = join(folder, 'kernels', cached()[0]!);
    rmSync(path);
    mkdirSync(join(path, 'in the way'), { recursive: true });
    await expect(compileKernels([{ source }], 90)).rejects.toThrow(/kernels cannot be kept/);
  });

  // What the packages' users get, without Node's running of TypeScript.
  it('compiles in threads of the built package', () => {
    const built = mkdtempSync(fileURLToPath(new URL('../../.built-', import.meta.url)));
    onTestFinished(() => rmSync(built, { recursive: true }));
    const root = new URL('../../', import.meta.url);
    writeFileSync(join(built, 'package.json'), '{ "name": "built", "type": "module" }');
    const tsup = fileURLToPath(new URL('../../node_modules/.bin/tsup', root));
    execFileSync(
      tsup,
      ['--config', '../../tooling/tsup.config.ts', '--no-clean', '--out-dir', join(built, 'dist')],
      { cwd: fileURLToPath(root), stdio: 'pipe' },
    );
    const source = file('k.cu', '// k');
    const program = `
      import { compileKernels } from '${join(built, 'dist', 'index.js')}';
      const kernels = [1, 2, 3].map((N) => ({ source: new URL('${source.href}'), defines: { N } }));
      console.log(await compileKernels(kernels, 90, { threads: 2 }));`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
    });
    expect(output).toBe('3\n');
    launchPath().buildFile(source, { N: 3 });
  });
});
