import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { LocalRegistry, Manifest } from './local-registry.ts';
import { run } from './run-command.ts';

interface SourceManifest extends Omit<Manifest, 'dist'> {
  readonly files: readonly string[];
  readonly devDependencies?: Record<string, string>;
}

/**
 * A copy of the packages as they are built, with the changesets that wait for a release: changesets raises its versions
 * and publishes from it, as the workflow does from the repository.
 */
export class ReleaseWorkspace {
  readonly #folder: string;
  readonly #registry: LocalRegistry;
  /** Manifests by the names of their packages. */
  readonly #paths = new Map<string, string>();

  /** @param folder - An empty one. */
  constructor(root: string, folder: string, registry: LocalRegistry) {
    this.#folder = folder;
    this.#registry = registry;
    const shared = ['package.json', 'pnpm-workspace.yaml', 'LICENSE', '.changeset', 'libraries/LICENSE'];
    for (const path of [...shared, 'libraries/take-library.mjs']) {
      cpSync(join(root, path), join(folder, path), { recursive: true });
    }
    const manifests = globSync('{packages,libraries}/*/package.json', { cwd: root });
    for (const path of manifests) {
      const { name, files } = readManifest(join(root, path));
      this.#paths.set(name, join(folder, path));
      const place = dirname(path);
      for (const part of globSync(['package.json', 'README.md', ...files], { cwd: join(root, place) })) {
        cpSync(join(root, place, part), join(folder, place, part), { recursive: true });
      }
    }
    for (const path of manifests) this.#linkDependencies(root, dirname(path));
  }

  get names(): readonly string[] {
    return [...this.#paths.keys()];
  }

  /** The peer ranges of a package. */
  peersOf(name: string): Readonly<Record<string, string>> {
    return readManifest(this.#paths.get(name)!).peerDependencies ?? {};
  }

  /** Lets a package accept other versions of a peer. */
  acceptPeer(name: string, peer: string, range: string): void {
    const path = this.#paths.get(name)!;
    const manifest = readManifest(path);
    const peerDependencies = { ...manifest.peerDependencies, [peer]: range };
    writeFileSync(path, JSON.stringify({ ...manifest, peerDependencies }));
  }

  /** Raises versions by the changesets that wait, and by one more for each of `bumps`. */
  async raiseVersions(bumps: Readonly<Record<string, 'minor' | 'patch'>> = {}): Promise<void> {
    await run('git', ['init', '--quiet'], this.#folder);
    Object.entries(bumps).forEach(([name, bump], i) => {
      const text = `---\n'${name}': ${bump}\n---\n\nA change.\n`;
      writeFileSync(join(this.#folder, `.changeset/change-${i}.md`), text);
    });
    const waiting = globSync('.changeset/*.md', { cwd: this.#folder });
    if (waiting.length > 0) await run('changeset', ['version'], this.#folder);
  }

  /** Publishes each version that the registry does not have, and gives their manifests. */
  async publish(): Promise<readonly Manifest[]> {
    const before = this.#registry.published.length;
    await run('changeset', ['publish', '--no-git-tag'], this.#folder, {
      ...this.#registry.workflow,
      HOME: this.#folder, // without the user's own tokens
      pnpm_config_registry: this.#registry.url,
      pnpm_config_provenance: 'false', // only GitHub's own jobs can be signed for
    });
    return this.#registry.published.slice(before);
  }

  /** What packing asks for: the packages that a range names, at their versions here, and onnxruntime-node. */
  #linkDependencies(root: string, place: string): void {
    const { dependencies, optionalDependencies, devDependencies } = readManifest(
      join(this.#folder, place, 'package.json'),
    );
    for (const name of Object.keys({ ...dependencies, ...optionalDependencies, ...devDependencies })) {
      const own = this.#paths.get(name);
      const link = join(this.#folder, place, 'node_modules', name);
      mkdirSync(dirname(link), { recursive: true });
      symlinkSync(own ? dirname(own) : join(root, place, 'node_modules', name), link);
    }
  }
}

function readManifest(path: string): SourceManifest {
  return JSON.parse(readFileSync(path, 'utf8'));
}
