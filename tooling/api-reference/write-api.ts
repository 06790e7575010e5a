// The pages of the API reference, from the docstrings of all exports.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import {
  Application,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type TypeDocOptions,
} from 'typedoc';
import type { PluginOptions } from 'typedoc-plugin-markdown';
import { writeTopics } from './topics.ts';

const root = resolve(import.meta.dirname, '../..');
const topicsFolder = join(import.meta.dirname, '.topics');

/** A page of the reference: an entry point of a package, or a topic of one with hundreds of exports. */
export interface ApiPage {
  /** What its exports are imported from: `@roofline/tensor-core/testing`. */
  readonly from: string;
  /** Its path in the reference, without an ending. */
  readonly path: string;
  readonly title: string;
  /** The module whose exports it shows. */
  readonly source: string;
}

/** The module of each entry point, by the name that it is imported under. */
function entrySources(): Map<string, string> {
  const sources = new Map<string, string>();
  for (const folder of readdirSync(join(root, 'packages'))) {
    const { name, exports } = JSON.parse(
      readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'),
    ) as { name: string; exports: Record<string, string | Record<string, string>> };
    for (const [subpath, target] of Object.entries(exports)) {
      const file = typeof target === 'object' ? target['roofline-source'] : undefined;
      if (file !== undefined) sources.set(join(name, subpath), join(root, 'packages', folder, file));
    }
  }
  return sources;
}

/** All pages: those of a package after another, its topics first. Writes the modules of topics. */
export function apiPages(): ApiPage[] {
  const entries = entrySources();
  return [...entries].flatMap(([from, source]): ApiPage[] => {
    const path = from.replace('@roofline/', '');
    if (from !== '@roofline/tensor-core') return [{ from, path, title: from, source }];
    const topics = writeTopics(source, topicsFolder, entries);
    return topics.map((topic) => ({ ...topic, from, path: `${path}/${topic.slug}` }));
  });
}

/** All exports with their docstrings. Throws for sources that cannot be read; whether types are right is for `tsc` to say. */
export async function readApi() {
  const pages = apiPages();
  const options: TypeDocOptions & PluginOptions = {
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: pages.map(({ source }) => source),
    tsconfig: join(root, 'tooling/api-reference/tsconfig.json'),
    // `tsc` checks them in a third of the time.
    skipErrorChecking: true,
    basePath: root,
    name: 'API reference',
    readme: 'none',
    excludeInternal: true,
    excludePrivate: true,
    disableSources: true,
    sort: ['alphabetical'],
    router: 'module',
    entryFileName: 'README',
    hidePageHeader: true,
    hideBreadcrumbs: true,
    useCodeBlocks: true,
    useHTMLAnchors: true,
    expandParameters: false,
    parametersFormat: 'table',
    interfacePropertiesFormat: 'table',
    typeAliasPropertiesFormat: 'table',
    propertyMembersFormat: 'table',
    validation: { notExported: false, invalidLink: true, notDocumented: false },
    logLevel: 'Warn',
  };
  const application = await Application.bootstrapWithPlugins(options as TypeDocOptions);
  const project = await application.convert();
  if (!project)
    throw new Error('The API reference cannot be written: the sources cannot be read; `tsc` says why.');
  const paths = new Map(pages.map(({ path, source }) => [moduleName(source), path]));
  for (const module of project.children ?? []) module.name = paths.get(module.name) ?? module.name;
  return { application, project, pages };
}

/** As typedoc names the module of a file. */
function moduleName(source: string): string {
  return relative(root, source).replace(/(\/index)?\.ts$/, '');
}

/** `@roofline/optim: AdamW`, for each export without a docstring. */
export function undocumented(project: ProjectReflection): string[] {
  return (project.children ?? []).flatMap((module) =>
    (module.children ?? [])
      .filter((each) => each.kind !== ReflectionKind.Reference && !isDocumented(each))
      .map((each) => `${module.name}: ${each.name}`),
  );
}

/** A function's docstring is at its signatures, that of a value made by a function at the value. */
function isDocumented(each: DeclarationReflection): boolean {
  const signatures = each.signatures ?? [];
  return [each, ...signatures].some(({ comment }) => comment !== undefined && comment.hasVisibleComponent());
}

/**
 * Writes the pages into a folder, in place of what it holds; returns what they document, and typedoc's warnings: links of
 * docstrings that lead nowhere.
 */
export async function writeApi(folder: string): Promise<{ project: ProjectReflection; warnings: string[] }> {
  const { application, project, pages } = await readApi();
  const warnings: string[] = [];
  application.logger.warn = (text: string) => void warnings.push(text);
  application.validate(project);
  rmSync(folder, { recursive: true, force: true });
  application.options.setValue('outputs', [{ name: 'markdown', path: folder }]);
  await application.generateOutputs(project);
  if (application.logger.hasErrors()) throw new Error(`The API reference cannot be written to ${folder}.`);
  for (const page of pages) headPage(join(folder, `${page.path}.md`), page);
  writeFileSync(join(folder, 'README.md'), contents(pages));
  return { project, warnings };
}

/** The title, and what to import. */
function headPage(path: string, { title, from }: ApiPage): void {
  const head = title === from ? `# ${title}` : `# ${title}\n\n\`import { … } from '${from}';\``;
  writeFileSync(path, readFileSync(path, 'utf8').replace(/^# .*/, head));
}

function contents(pages: readonly ApiPage[]): string {
  const packages = Map.groupBy(pages, ({ from }) => from.split('/').slice(0, 2).join('/'));
  const lists = [...packages].map(([name, its]) => {
    const links = its.map(({ title, path }) => `- [${title}](${path}.md)`);
    return `## ${name}\n\n${links.join('\n')}\n`;
  });
  return `# API reference\n\nEvery export, from its docstring.\n\n${lists.join('\n')}`;
}
