import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openRegistry, type LocalRegistry, type Manifest } from './local-registry.ts';
import { ReleaseWorkspace } from './release-workspace.ts';
import { run } from './run-command.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const workflow = readFileSync(join(root, '.github/workflows/release.yml'), 'utf8');
const importable: readonly string[] = globSync('packages/*/package.json', { cwd: root }).map(
  (path) => JSON.parse(readFileSync(join(root, path), 'utf8')).name,
);

let scratch: string;
let registry: LocalRegistry;
let workspace: ReleaseWorkspace;
/** What there is after the next release: all packages as they are, at the versions that their changesets lead to. */
let released: readonly Manifest[];

/** What a project may do with each entry point of tensor-core and cuda. */
const usesOfTensors = `
  import { tensor } from '@roofline/tensor-core';
  import { cudaDevice } from '@roofline/tensor-core/kernel-api';
  import { openEmulatedDevice } from '@roofline/tensor-core/testing';
  import { type Gpu, openGpu } from '@roofline/cuda';
  import { nearestOf } from '@roofline/cuda/host';
  import { CudaGraph } from '@roofline/cuda/parts';
  import { openEmulatedGpu } from '@roofline/cuda/testing';
  export const values: number[] = tensor([1, 2]).toFlatArray();
  // @ts-expect-error: a tensor is no text.
  export const text: string = tensor([1, 2]);
  export const gpus: (() => Gpu)[] = [openGpu, openEmulatedGpu, () => cudaDevice(openEmulatedDevice())];
  export const parts = [nearestOf, CudaGraph];`;

const addition = `import { tensor, add } from '@roofline/tensor-core';
  console.log(add(tensor([1, 2]), 1).toFlatArray().join());`;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'roofline-release-'));
  registry = await openRegistry();
  await run(process.execPath, ['scripts/pack-packages.mjs', tarballs()], root);
  // The release before it, as it was or as it is to be, so that ranges which reach down to it can be chosen from.
  registry.takeTarballs(globSync(`${tarballs()}/*.tgz`));
  workspace = new ReleaseWorkspace(root, join(scratch, 'workspace'), registry);
  await workspace.raiseVersions();
  await workspace.publish();
  released = [...new Map(registry.published.map((each) => [each.name, each])).values()];
});

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  rmSync(scratch, { recursive: true });
});

/** Where the packages lie as `npm run pack` packs them. */
function tarballs(): string {
  return join(scratch, 'tarballs');
}

/** The folder of a new project that takes the packages from the registry. */
function emptyProject(name: string): string {
  const project = join(scratch, name);
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{"name":"empty","private":true,"type":"module"}');
  writeFileSync(join(project, '.npmrc'), `@roofline:registry=${registry.url}\n`);
  return project;
}

function npmInstall(project: string, ...args: readonly string[]): Promise<string> {
  return run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', ...args], project);
}

it('a project installs the packages of a clone as the README says, without a registry that has them', async () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  expect(readme).toContain('npm run pack');
  const [, install] = /^(npm install \S*\/tarballs\/\*\.tgz)/m.exec(readme)!;
  expect(globSync('roofline-*.tgz', { cwd: tarballs() })).toHaveLength(importable.length + 1);

  const project = join(scratch, 'clone');
  mkdirSync(project);
  await run('npm', ['init', '-y'], project);
  const command = install!.replace(/\S*\/tarballs\//, `${tarballs()}/`);
  await run('sh', ['-c', `${command} --no-audit --no-fund --prefer-offline`], project);
  expect(await run('node', ['--input-type=module', '--eval', addition], project)).toBe('2,3\n');
  expect(await run('npx', ['roofline', '--help'], project)).toContain('npx roofline <command>');
});

describe('a release', () => {
  it('publishes every package, packed by pnpm', () => {
    expect(released.map(({ name }) => name).sort()).toEqual([...workspace.names].sort());
    for (const { name, dependencies, optionalDependencies, peerDependencies } of released) {
      const ranges = Object.values({ ...dependencies, ...optionalDependencies, ...peerDependencies });
      expect({ name, unpacked: ranges.filter((range) => /^(workspace|catalog):/.test(range)) }).toEqual({
        name,
        unpacked: [],
      });
    }
  });

  it('needs the identity of the workflow, and nothing else', async () => {
    expect(workflow).toMatch(/^ {2}id-token: write$/m);
    expect(workflow).not.toMatch(/token\b(?!: write)/i);
    await expect(publishFromElsewhere({})).rejects.toThrow('401 Unauthorized');
  });

  it('has a provenance: pnpm reads the variable of the workflow, and refuses outside of a known CI', async () => {
    const [, name, value] = /^\s+(\w*provenance): '(\w+)'$/im.exec(workflow)!;
    await expect(publishFromElsewhere({ [name!]: value })).rejects.toThrow(
      'ERR_PNPM_PROVENANCE_UNSUPPORTED_PROVIDER',
    );
  });

  /** Publishes a package as from a machine of one's own. */
  function publishFromElsewhere(variables: NodeJS.ProcessEnv): Promise<string> {
    const github = Object.keys(registry.workflow).map((variable) => [variable, undefined]);
    return run('pnpm', ['publish', '--no-git-checks'], join(root, 'packages/optim'), {
      ...Object.fromEntries(github),
      GITLAB_CI: undefined,
      CI: undefined,
      HOME: scratch,
      pnpm_config_registry: registry.url,
      ...variables,
    });
  }

  it('pairs the command line of changesets with its action', () => {
    const { version } = JSON.parse(
      readFileSync(join(root, 'node_modules/@changesets/cli/package.json'), 'utf8'),
    );
    expect(version).toMatch(/^3\./);
    expect(workflow).toContain('uses: changesets/action@v2.');
    expect(workflow).toContain('publish-script: npm run release');
  });
});

describe('the packages that it published', () => {
  let project: string;

  // As users install them: by their names from a registry, with install scripts on. npm refuses those that do not accept
  // each other as peers.
  beforeAll(async () => {
    project = emptyProject('project');
    await npmInstall(project, ...importable);
  });

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

  it('take less than 110 MB', async () => {
    const [kibibytes] = (await run('du', ['-sk', 'node_modules'], project)).split('\t');
    expect(Number(kibibytes)).toBeLessThan(110e6 / 1024);
  });

  it('calculate on the CPU', async () => {
    expect(await run('node', ['--input-type=module', '--eval', addition], project)).toBe('2,3\n');
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

  const nodenext = { module: 'nodenext', moduleResolution: 'nodenext' };
  const bundler = { module: 'esnext', moduleResolution: 'bundler' };

  // Without Node's types, and with a library that is older than what the packages were built with. Alone no package has
  // types that another one brings.
  it.each([...importable.map((name) => ({ names: [name], ...nodenext })), { names: importable, ...bundler }])(
    '$names: types that a strict project can use, by $moduleResolution',
    async ({ names, ...modules }) => {
      const whole = names.map((name, i) => `import * as whole${i} from '${name}';`);
      writeFileSync(
        join(project, 'use.ts'),
        `${whole.join('\n')}
       export const all = [${names.map((_, i) => `whole${i}`).join()}].map(Object.keys);
       ${names.includes('@roofline/tensor-core') ? usesOfTensors : ''}`,
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
    },
  );

  it('have a roofline command that works there', async () => {
    expect(await run(join(project, 'node_modules/.bin/roofline'), ['--help'], project)).toContain(
      'npx roofline <command>',
    );
  });
});

// While versions are 0.x, a minor is a breaking release.
describe('a later release', () => {
  const core = '@roofline/tensor-core';
  const optim = '@roofline/optim';
  let projects = 0;

  /** Publishes what changesets raises, and gives the versions of what came. */
  async function release(bumps: Record<string, 'minor' | 'patch'>): Promise<Record<string, string>> {
    await workspace.raiseVersions(bumps);
    return versionsOf(await workspace.publish());
  }

  const versionsOf = (manifests: readonly Manifest[]) =>
    Object.fromEntries(manifests.map(({ name, version }) => [name, version]));

  /** The packages that ask for tensor-core as a peer, as the first release has them. */
  const dependants = () =>
    versionsOf(released.filter(({ peerDependencies = {} }) => core in peerDependencies));

  /** A project in which npm chose versions for these, which are exact or ranges. */
  async function install(wanted: Record<string, string>, ...options: readonly string[]): Promise<string> {
    const project = emptyProject(`later-${projects++}`);
    const specs = Object.entries(wanted).map(([name, range]) => `${name}@${range}`);
    await npmInstall(project, ...options, ...specs);
    return project;
  }

  /** The versions that npm chooses for a project that asks for these. Throws where they do not go together. */
  async function chosen(wanted: Record<string, string>): Promise<Record<string, string>> {
    const project = await install(wanted, '--package-lock-only');
    const { packages } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version: string }>;
    };
    return Object.fromEntries(
      Object.keys(wanted).map((name) => [name, packages[`node_modules/${name}`]!.version]),
    );
  }

  it('of one package publishes it alone, and installs next to the others as they were', async () => {
    const later = await release({ [optim]: 'patch' });
    expect(Object.keys(later)).toEqual([optim]);
    const wanted = { ...versionsOf(released.filter(({ name }) => importable.includes(name))), ...later };
    expect(await chosen(wanted)).toEqual(wanted);
  });

  /** Training steps that need every package that has tensor-core as a peer. */
  const example = `
    import { AdamW } from '@roofline/optim';
    import { flashAttention } from '@roofline/flash-attn';
    import { TransformerLM, byteWindows, languageModelLoss } from '@roofline/transformer';
    import '@roofline/collectives';
    const size = { vocabularySize: 256, contextLength: 8, modelDimension: 16, feedForwardDimension: 32, layers: 1, heads: 2 };
    const model = new TransformerLM(size, { device: 'cpu', seed: 0, attention: flashAttention });
    const optimizer = new AdamW(model.parameters(), { learningRate: 1e-2 });
    const { ids, targets } = byteWindows('The roof is what the hardware allows.', { step: 0, batch: 2, contextLength: 8 });
    const losses = [0, 1].map(() => {
      const loss = languageModelLoss(model, ids, targets);
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return loss.item();
    });
    console.log(losses[1] < losses[0]);`;

  it('that breaks nothing runs an example on the lowest tensor-core that it accepts, and older packages on the newest', async () => {
    const { [core]: newest, ...others } = await release({ [core]: 'patch', [optim]: 'patch' });
    expect(Object.keys(others)).toEqual([optim]);
    const mixes = [
      { ...dependants(), ...others, [core]: await lowestAccepted() },
      { ...dependants(), [core]: newest! },
    ];
    for (const mix of mixes) {
      const project = await install(mix);
      expect(await run('node', ['--input-type=module', '--eval', example], project)).toBe('true\n');
    }
  });

  /** The lowest tensor-core that all dependants accept: of this registry, or a tarball of what was released before. */
  async function lowestAccepted(): Promise<string> {
    const lowest = Object.keys(dependants())
      .map((name) => /\d+\.\d+\.\d+/.exec(workspace.peersOf(name)[core]!)![0])
      .sort((a, b) => a.localeCompare(b, 'en', { numeric: true }))
      .at(-1)!;
    if (registry.published.some(({ name, version }) => name === core && version === lowest)) return lowest;
    return join(scratch, (await run('npm', ['pack', '--silent', `${core}@${lowest}`], scratch)).trim());
  }

  it('that breaks is refused next to what does not accept it, and leaves older projects as they were', async () => {
    const before = released.find(({ name }) => name === core)!.version;
    const asked = { [core]: `^${before}`, [optim]: `^${dependants()[optim]}` };
    const old = await chosen(asked);
    const { [core]: breaking } = await release({ [core]: 'minor' });
    expect(await chosen(asked)).toEqual(old);
    await expect(chosen({ [core]: breaking!, [optim]: 'latest' })).rejects.toThrow('ERESOLVE');

    workspace.acceptPeer(optim, core, `${workspace.peersOf(optim)[core]} || ^${breaking}`);
    const { [optim]: widened } = await release({ [optim]: 'patch' });
    for (const version of [before, breaking!]) {
      const mix = { [core]: version, [optim]: widened! };
      expect(await chosen(mix)).toEqual(mix);
    }
  });
});
