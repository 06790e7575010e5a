// Before one of these packages is packed: takes its library from onnxruntime-node, and writes its licence and README.
import { copyFileSync, existsSync, readFileSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const folder = process.cwd();
const { name, description, version, files, publishConfig } = readJson(join(folder, 'package.json'));
const origin = createRequire(join(folder, 'package.json')).resolve('onnxruntime-node/package.json');
const shipped = readJson(origin).version;
if (shipped !== version) {
  throw new Error(`${name} is ${version}, and onnxruntime-node ${shipped}: give it that version.`);
}

const [library] = files;
const target = join(folder, library);
// Beside it and then renamed: a process that loads half a library is killed by SIGBUS.
const fresh = `${target}.${process.pid}`;
copyFileSync(findLibrary(join(dirname(origin), 'bin')), fresh);
renameSync(fresh, target);
copyFileSync(new URL('LICENSE', import.meta.url), join(folder, 'LICENSE'));
writeFileSync(
  join(folder, 'README.md'),
  `# ${name}

${description} \`npm install @roofline/tensor-core\` brings it where it fits.

\`${library}\` is the file of that name in [onnxruntime-node](https://github.com/microsoft/onnxruntime/tree/v${version}/js/node)
${version}, unchanged: ONNX Runtime, Copyright (c) Microsoft Corporation, MIT licence, which lies beside. What it contains of
others is listed in its [notices](https://github.com/microsoft/onnxruntime/blob/v${version}/ThirdPartyNotices.txt).
`,
);

function findLibrary(binaries) {
  const places = readdirSync(binaries).map((napi) =>
    join(binaries, napi, publishConfig.os[0], publishConfig.cpu[0], library),
  );
  const found = places.find((path) => existsSync(path));
  if (found === undefined) throw new Error(`onnxruntime-node ${shipped} has none of ${places.join(', ')}.`);
  return found;
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'));
}
