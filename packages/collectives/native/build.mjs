// Builds gloo_shim.cc with g++ against Gloo's headers, where both are found; says so where they are not. Run by
// the package's `build:native`, or by hand after installing: `node native/build.mjs`. `--install` first tries
// apt-get, where it is there and this process is root.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
const source = join(folder, 'gloo_shim.cc');
const library = join(folder, 'build', 'libroofline_gloo.so');

const succeeds = (command, args, options) => spawnSync(command, args, options).status === 0;
const sources = readdirSync(folder).filter((name) => /\.(cc|h|mjs)$/.test(name));
const isFresh = () =>
  existsSync(library) &&
  sources.every((name) => statSync(join(folder, name)).mtimeMs < statSync(library).mtimeMs);
const hasHeaders = () =>
  succeeds('g++', ['-std=c++17', '-fsyntax-only', '-include', 'gloo/context.h', '-x', 'c++', '/dev/null']);

if (process.argv.includes('--install') && !hasHeaders() && process.getuid?.() === 0) {
  console.log('apt-get install libgloo-dev g++');
  const quietly = { stdio: ['ignore', 'ignore', 'inherit'], timeout: 300_000 };
  const install = ['install', '-y', '--no-install-recommends', 'libgloo-dev', 'g++'];
  if (!succeeds('apt-get', install, quietly) && succeeds('apt-get', ['update'], quietly))
    succeeds('apt-get', install, quietly);
}

if (!hasHeaders()) {
  // What was built before cannot be trusted to fit what is installed now.
  rmSync(library, { force: true });
  console.log(
    "Gloo's headers or g++ were not found: built without Gloo. `apt-get install libgloo-dev g++` brings them.",
  );
} else if (!isFresh()) {
  mkdirSync(join(folder, 'build'), { recursive: true });
  // Written next to it and then renamed, so that no process loads half a file. Not unloaded: its threads may still run
  // at exit.
  const fresh = `${library}.${process.pid}`;
  const flags = [
    '-std=c++17',
    '-O3',
    '-fwrapv',
    '-fPIC',
    '-shared',
    '-fvisibility=hidden',
    '-Wl,-z,nodelete',
  ];
  const { status } = spawnSync('g++', [...flags, source, '-o', fresh, '-lgloo', '-pthread'], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(1);
  renameSync(fresh, library);
}
