// Writes docs/api from the docstrings of all exports: `npm run api`.
import { readdirSync, readFileSync, rmSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import {
  Application,
  type DeclarationReflection,
  type ProjectReflection,
  ReflectionKind,
  type TypeDocOptions,
} from 'typedoc';
import type { PluginOptions } from 'typedoc-plugin-markdown';

const root = resolve(import.meta.dirname, '../..');

/** What is imported, by the name that it is imported under: `@roofline/tensor-core/kernel-api`. */
export function entryPoints(): Map<string, string> {
  const found = new Map<string, string>();
  for (const folder of readdirSync(join(root, 'packages'))) {
    const { name, exports } = JSON.parse(
      readFileSync(join(root, 'packages', folder, 'package.json'), 'utf8'),
    );
    for (const [path, target] of Object.entries<Record<string, string>>(exports)) {
      const source = typeof target === 'object' ? target['roofline-source'] : undefined;
      if (source) found.set(join(name, path), join(root, 'packages', folder, source));
    }
  }
  return found;
}

/** All exports with their docstrings. Throws for sources that cannot be read; whether types are right is for `tsc` to say. */
export async function readApi() {
  const options: TypeDocOptions & PluginOptions = {
    plugin: ['typedoc-plugin-markdown'],
    entryPoints: [...entryPoints().values()],
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
  nameModules(project);
  return { application, project };
}

/** As they are imported, not as they lie in folders. */
function nameModules(project: ProjectReflection): void {
  const names = new Map(
    [...entryPoints()].map(([name, path]) => [relative(root, path).replace(/(\/index)?\.ts$/, ''), name]),
  );
  for (const module of project.children ?? []) module.name = names.get(module.name) ?? module.name;
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

/** Writes the pages into a folder, in place of what it holds; returns what they document, and typedoc's warnings. */
export async function writeApi(folder: string): Promise<{ project: ProjectReflection; warnings: string[] }> {
  const { application, project } = await readApi();
  const warnings: string[] = [];
  application.logger.warn = (text: string) => void warnings.push(text);
  application.validate(project);
  rmSync(folder, { recursive: true, force: true });
  application.options.setValue('outputs', [{ name: 'markdown', path: folder }]);
  await application.generateOutputs(project);
  if (application.logger.hasErrors()) throw new Error(`The API reference cannot be written to ${folder}.`);
  return { project, warnings };
}

if (import.meta.main) {
  const { warnings } = await writeApi(process.argv[2] ?? join(root, 'docs/api'));
  for (const warning of warnings) console.warn(warning);
}
