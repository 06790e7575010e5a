// The reference of a package with hundreds of exports has a page for each topic instead of one for all.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

/** A page: its title, and which sources the exports that it shows are from, by how their paths begin. */
interface Topic {
  readonly title: string;
  readonly sources: readonly string[];
}

/** Those of tensor-core in the order of a newcomer's questions. The longest path that fits a source decides. */
const topics: readonly Topic[] = [
  {
    title: 'Tensors',
    sources: ['tensor/tensor', 'tensor/lifetime', 'tensor/storage', 'base/dtype', 'base/shape'],
  },
  { title: 'Devices', sources: ['tensor/device', 'backends', 'base/device-memory', 'onnx/threads'] },
  { title: 'Creation', sources: ['ops/creation', 'base/float16'] },
  { title: 'Random numbers', sources: ['ops/random', 'tensor/random'] },
  { title: 'Elementwise', sources: ['ops/elementwise', 'ops/support/pointwise'] },
  { title: 'Reductions', sources: ['ops/reduce'] },
  { title: 'Shapes and views', sources: ['ops/shape'] },
  { title: 'Indexing', sources: ['ops/index'] },
  { title: 'Matrix products', sources: ['ops/matrix', 'op/float32-matmul-precision'] },
  { title: 'Neural networks', sources: ['ops/nn'] },
  { title: 'Copies and writes', sources: ['ops/copy'] },
  { title: 'Autograd', sources: ['autograd', 'tensor/tape/grad-mode'] },
  { title: 'Mixed precision', sources: ['op/autocast'] },
  { title: 'Compile', sources: ['compile', 'op/replay', 'tensor/tracing', 'op/per-run-attributes'] },
  {
    title: 'Profiles and memory',
    sources: ['observe', 'tensor/ranges', 'base/memory-observer', 'op/observers'],
  },
  {
    title: 'Ops of your own',
    sources: ['op', 'tensor/tape', 'onnx/graph', '@roofline/cuda', 'base/memory-view', 'base/check-'],
  },
  { title: 'Errors and checks', sources: ['base/errors', '@roofline/cuda/host'] },
];

/** A topic as a module of its own. */
export interface TopicModule {
  readonly title: string;
  /** The title as part of a path: `random-numbers`. */
  readonly slug: string;
  readonly source: string;
}

/**
 * Writes a module for each topic of tensor-core's index of exports into `folder`, in place of what it holds; `entries` has the
 * sources of the packages that it exports from. Throws for an export whose source has no topic.
 */
export function writeTopics(
  index: string,
  folder: string,
  entries: ReadonlyMap<string, string>,
): TopicModule[] {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const statements = new Map<Topic, string[]>(topics.map((topic) => [topic, []]));
  for (const [, what = '', from = ''] of readFileSync(index, 'utf8').matchAll(exportStatement)) {
    const source = entries.get(from) ?? resolve(dirname(index), from);
    statements.get(topicOf(from))!.push(`export ${what} from '${source}';\n`);
  }
  return [...statements]
    .filter(([, lines]) => lines.length > 0)
    .map(([{ title }, lines]) => {
      const slug = title.toLowerCase().replaceAll(' ', '-');
      const source = join(folder, `${slug}.ts`);
      writeFileSync(source, lines.join(''));
      return { title, slug, source };
    });
}

const exportStatement = /^export ([^;]*?) from '(.*)';$/gm;

function topicOf(from: string): Topic {
  const path = from.replace(/^\.\//, '');
  const fits = topics.flatMap((topic) =>
    topic.sources
      .filter((source) => path.startsWith(source))
      .map((source) => ({ topic, length: source.length })),
  );
  const best = fits.sort((a, b) => b.length - a.length)[0];
  if (best) return best.topic;
  throw new Error(
    `No topic of the API reference has ${from}: name its folder in tooling/api-reference/topics.ts.`,
  );
}
