import { groupNames } from './group-names.ts';
import { type AnyModule, Module } from './module.ts';
import { describe, ownParameters, sizesOf } from './summary.ts';

/** `util.inspect.custom`, without importing Node's util. */
const inspectCustom = Symbol.for('nodejs.util.inspect.custom');

// What `console.log` prints; added here, so that the class itself need not know how it is drawn.
Object.defineProperty(Module.prototype, inspectCustom, {
  value(this: AnyModule): string {
    return printModule(this);
  },
});

/** A module as a tree: its class, its parameters' shapes, their counts and bytes. Children that are alike stand there once. */
function printModule(module: AnyModule): string {
  return [`${module.constructor.name}  ${sizeText(module)}`, ...branchesOf(module)].join('\n');
}

function branchesOf(module: AnyModule): string[] {
  const parameters = ownParameters(module).map(([name, tensor]) => [`${name}  ${describe(tensor)}`]);
  const branches = [...parameters, ...childrenOf(module)];
  return branches.flatMap(([head, ...rest], index) => {
    const isLast = index === branches.length - 1;
    return [`${isLast ? '└─' : '├─'} ${head}`, ...rest.map((line) => `${isLast ? '  ' : '│ '} ${line}`)];
  });
}

/** The lines of each child; of those of an array that look alike, one after the other, the first stands for all. */
function childrenOf(module: AnyModule): string[][] {
  const children = [...module.children()].map(([name, child]) => ({
    ...{ name, array: name.replace(/\.\d+$/, ''), child },
    lines: branchesOf(child),
  }));
  const alike: (typeof children)[] = [];
  for (const each of children) {
    const last = alike.at(-1)?.[0];
    const isSame =
      last?.array === each.array &&
      last.child.constructor === each.child.constructor &&
      last.lines.join('\n') === each.lines.join('\n');
    if (isSame) alike.at(-1)!.push(each);
    else alike.push([each]);
  }
  return alike.map((group) => {
    const [{ child, lines }] = group as [(typeof children)[number]];
    const name = groupNames(group.map((each) => each.name))[0]!.name;
    const times = group.length === 1 ? '' : ` each, ${group.length} times`;
    const head = `${name}: ${child.constructor.name}`;
    // A module of parameters alone is one line.
    if (lines.length > 0 && [...child.children()].length === 0) {
      const parts = ownParameters(child).map(([part, tensor]) => `${part} ${describe(tensor)}`);
      return [`${head}  ${parts.join(', ')}${times}`];
    }
    return [`${head}  ${sizeText(child)}${times}`, ...lines];
  });
}

function sizeText(module: AnyModule): string {
  const { parameters, bytes } = sizesOf(module.parameters());
  return `${parameters.toLocaleString('en')} parameters, ${bytesText(bytes)}`;
}

function bytesText(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${Number((bytes / 1024 ** power).toPrecision(3))} ${units[power]}`;
}
