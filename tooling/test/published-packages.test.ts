import { execFile } from 'node:child_process';
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRegistry, type LocalRegistry } from './local-registry.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8');
const names = ['packages', 'libraries'].flatMap((place) =>
  globSync(`${place}/*/package.json`, { cwd: root }).map((path) => nameOf(join(root, path))),
);
const importable = names.filter((name) => !name.includes('/onnxruntime-'));

function nameOf(manifest: string): string {
  return JSON.parse(readFileSync(manifest, 'utf8')).name;
}

/** What a project may do with each entry point of tensor-core. */
const usesOfTensors = `
  import { tensor } from '@roofline/tensor-core';
  import { cudaDevice } from '@roofline/tensor-core/native';
  import { openEmulatedDevice } from '@roofline/tensor-core/testing';
  import { nearestOf } from '@roofline/tensor-core/nearest';
  export const values: number[] = tensor([1, 2]).toFlatArray();
  // @ts-expect-error: a tensor is no text.
  export const text: string = tensor([1, 2]);
  export const all = [cudaDevice, openEmulatedDevice, nearestOf];`;

/** What a command prints. Throws an error that holds all its output. */
async function run(
  command: string,
  args: readonly string[],
  cwd: string,
  variables: NodeJS.ProcessEnv = {},
): Promise<string> {
  // The folders that pnpm's programs add for what they start would hide a missing package; and where npm, if it
  // runs this, has its own .npmrc would hide the workflow's.
  const own = Object.entries(process.env).filter(([name]) => !/^npm_config_(user|global)config$/i.test(name));
  const env = { ...Object.fromEntries(own), ...variables, NODE_PATH: undefined };
  const options = { cwd, env, timeout: 600_000, maxBuffer: 2 ** 26 };
  try {
    return (await promisify(execFile)(command, args, options)).stdout;
  } catch (cause) {
    const { stdout, stderr } = cause as { stdout: string; stderr: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, { cause });
  }
}

let scratch: string;
let registry: LocalRegistry;
/** Where pnpm publishes to, with the token that the workflow gives it. */
let publishing: NodeJS.ProcessEnv;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'roofline-release-'));
  registry = await openRegistry('a-token');
  const tokenLine = /echo '(.*)' >> ~\/\.npmrc/.exec(workflow)![1]!;
  writeFileSync(
    join(scratch, '.npmrc'),
    tokenLine.replace('//registry.npmjs.org/', registry.url.replace('http:', '')),
  );
  publishing = { HOME: scratch, NPM_TOKEN: 'a-token', pnpm_config_registry: registry.url };
});

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true });
});

describe('a release', () => {
  it('publishes every package, packed by pnpm, with the token of the workflow', async () => {
    await run('changeset', ['publish', '--no-git-tag'], root, publishing);
    expect(registry.published.map(({ name }) => name).sort()).toEqual(names.sort());
    for (const { name, dependencies, optionalDependencies, peerDependencies } of registry.published) {
      const ranges = Object.values({ ...dependencies, ...optionalDependencies, ...peerDependencies });
      expect({ name, unpacked: ranges.filter((range) => /^(workspace|catalog):/.test(range)) }).toEqual({
        name,
        unpacked: [],
      });
    }
  }, 600_000);

  it('has a provenance: pnpm reads the variable of the workflow, and refuses outside of a known CI', async () => {
    const [, name, value] = /^\s+(\w*provenance): '(\w+)'$/im.exec(workflow)!;
    const folder = join(root, 'packages/optim');
    const github = { GITHUB_ACTIONS: undefined, GITLAB_CI: undefined, CI: undefined };
    const variables = { ...publishing, ...github, [name!]: value };
    await expect(run('pnpm', ['publish', '--no-git-checks'], folder, variables)).rejects.toThrow(
      'ERR_PNPM_PROVENANCE_UNSUPPORTED_PROVIDER',
    );
  });

  it('pairs the command line of changesets with its action', () => {
    const { version } = JSON.parse(
      readFileSync(join(root, 'node_modules/@changesets/cli/package.json'), 'utf8'),
    );
    expect(version).toMatch(/^3\./);
    expect(workflow).toContain('uses: changesets/action@v2.');
    expect(workflow).toContain('publish-script: npm run release');
  });

  it('covers every package by a readable changeset or a released version', async () => {
    expect(await run('changeset', ['status'], root)).not.toContain('error');
  });
});

describe('the packages that it published', () => {
  let project: string;

  // As users install them: by their names from a registry, with install scripts on.
  beforeAll(async () => {
    project = join(scratch, 'project');
    mkdirSync(project);
    writeFileSync(
      join(project, 'package.json'),
      JSON.stringify({ name: 'empty', private: true, type: 'module' }),
    );
    writeFileSync(join(project, '.npmrc'), `@roofline:registry=${registry.url}\n`);
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...importable], project);
  }, 600_000);

  it('run no install script but that of koffi, which looks for its binary, and fetch one ONNX Runtime', () => {
    const lock = JSON.parse(readFileSync(join(project, 'node_modules/.package-lock.json'), 'utf8')) as {
      packages: Record<string, { hasInstallScript?: boolean }>;
    };
    const installed = Object.entries(lock.packages);
    const scripted = installed.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => path);
    expect(scripted).toEqual(['node_modules/koffi']);
    expect(installed.map(([path]) => path).filter((path) => path.includes('onnxruntime'))).toEqual([
      `node_modules/@roofline/onnxruntime-${process.platform}-${process.arch}`,
    ]);
  });

  it('take less than 100 MB', async () => {
    const [kibibytes] = (await run('du', ['-sk', 'node_modules'], project)).split('\t');
    expect(Number(kibibytes)).toBeLessThan(100e6 / 1024);
  });

  it('calculate on the CPU', async () => {
    const script = `import { tensor, add } from '@roofline/tensor-core';
      console.log(add(tensor([1, 2]), 1).toFlatArray().join());`;
    expect(await run('node', ['--input-type=module', '--eval', script], project)).toBe('2,3\n');
  });

  it.each(importable)('%s imports in an empty project', async (name) => {
    const script = `import(${JSON.stringify(name)}).then((module) => console.log(Object.keys(module).length))`;
    expect(Number(await run('node', ['--input-type=module', '--eval', script], project))).toBeGreaterThan(0);
  });

  it('tell the sources of an allocation by the lines that people read', async () => {
    const sweep = '--size tiny --context 16 --batch 1 --mode forward --dtype float32 --warmup 0 --steps 1';
    const words = ['memory', ...sweep.split(' '), '--device', 'cpu', '--out', 'memory'];
    await run(join(project, 'node_modules/.bin/roofline'), words, project);
    const records = readFileSync(join(project, 'memory/results.jsonl'), 'utf8');
    expect(records).toContain('node_modules/@roofline/transformer/src/layers/');
    expect(records).not.toMatch(/dist\/[\w-]+\.js:\d/);
  });

  // Each alone, without Node's types, and with a library that is older than what the packages were built with.
  it.each(
    importable.flatMap((name) => [
      { name, module: 'nodenext', moduleResolution: 'nodenext' },
      { name, module: 'esnext', moduleResolution: 'bundler' },
    ]),
  )('$name has types that a strict project can use, by $moduleResolution', async ({ name, ...modules }) => {
    writeFileSync(
      join(project, 'use.ts'),
      `import * as whole from '${name}';
       export const names = Object.keys(whole);
       ${name === '@roofline/tensor-core' ? usesOfTensors : ''}`,
    );
    const compilerOptions = {
      ...modules,
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: false,
      target: 'es2022',
      noEmit: true,
      types: [],
    };
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['use.ts'] }));
    await run(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.json'], project);
  });

  it('have a roofline command that works there', async () => {
    expect(await run(join(project, 'node_modules/.bin/roofline'), ['--help'], project)).toContain(
      'roofline e2e',
    );
  });
});
