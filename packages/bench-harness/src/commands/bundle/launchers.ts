const HERE = 'here=$(CDPATH= cd -- "$(dirname -- "$(readlink -f -- "$0")")" && pwd)';

/** Files at the top of a bundle: name to content. */
export const launchers = {
  roofline: `#!/bin/sh
${HERE}
exec "$here/bin/node" --disable-warning=ExperimentalWarning "$here/packages/bench-harness/dist/cli.js" "$@"
`,
  'run-gpu-tests': `#!/bin/sh
# Runs the GPU tests of every package; without a GPU they fail. Arguments go to vitest.
${HERE}
PATH="$here/bin:$PATH"
REQUIRE_GPU=\${REQUIRE_GPU:-1}
export PATH REQUIRE_GPU
status=0
for tests in "$here"/packages/*/test/gpu; do
  [ -n "$(ls -A "$tests" 2>/dev/null)" ] || continue
  cd "$tests/../.." || exit 1
  node "$here/node_modules/vitest/vitest.mjs" run --config "$here/tooling/vitest.gpu.config.ts" "$@" || status=1
done
exit $status
`,
} as const;

export const readme = `# Roofline, bundled for Linux x64

Node.js, the built packages with their dependencies, and the GPU tests; nothing has to be installed.
For the GPU the host brings its driver and the CUDA libraries; \`./roofline doctor\` says what it finds.

    ./roofline doctor
    ./roofline e2e --size small --out results/small
    ./roofline report results/small
    ./run-gpu-tests

Programs of your own, in JavaScript or TypeScript, import the packages by their names from any folder in here:

    bin/node mine/train.ts
    ./roofline launch --nproc 2 -- mine/train.ts

Gloo, which connects processes on CPUs, is the host's, and the shim around it is built there: \`apt-get install libgloo-dev g++\`,
then \`bin/node packages/collectives/native/build.mjs\`. \`--peer torch\` needs a Python with PyTorch: set ROOFLINE_PYTHON to it.
`;
