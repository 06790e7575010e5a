import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

/** The words of an error may change; tests say which of them matter. */
const errorTexts = {
  shouldIgnore(path) {
    if (!path.isStringLiteral() && !path.isTemplateLiteral()) return undefined;
    const made = path.findParent((parent) => parent.isNewExpression());
    return made?.node.callee.name?.endsWith('Error') ? 'the words of an error' : undefined;
  },
};

export const strykerPlugins = [declareValuePlugin(PluginKind.Ignore, 'error-texts', errorTexts)];
