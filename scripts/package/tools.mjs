// What a build of the packages needs of the machine, and what to say where it is missing: tools of Debian, and the Node that goes into the packages.

import { existsSync, globSync } from "node:fs";
import { dirname, join } from "node:path";

/** Debian's packages of the tools that are run. */
const packagesOf = {
  "dpkg-deb": "dpkg",
  git: "git",
  gpg: "gpg gpg-agent",
  npm: "npm",
  strip: "binutils",
};

/** Says how to get a tool that this machine lacks. */
export function missingTool(tool) {
  const from = packagesOf[tool];
  return `${tool} is missing${from === undefined ? "" : `: apt-get install ${from}`}`;
}

/** Finds the Node that the npm package `node` installed for this processor, with its licence; undefined where it is not there. */
function installedNode(root, arch) {
  const places = [
    ...globSync(`node_modules/node/**/node-linux-${arch}`, { cwd: root }),
    `node_modules/node-linux-${arch}`,
  ].map((place) => join(root, place, "bin/node"));
  return places.find((node) => existsSync(node) && existsSync(licenceOf(node)));
}

/** The licence of a Node lies where the archives of nodejs.org have it. */
export const licenceOf = (node) => join(dirname(node), "../LICENSE");

/**
 * Finds the Node that goes into the packages: the one that is named, or the pinned one. Returns `{ node }`, or `{ fault }`, which says what is missing and how to get it.
 */
export function nodeToPack(root, arch, named) {
  if (named === undefined) {
    const node = installedNode(root, arch);
    return node === undefined ? { fault: notInstalled(arch) } : { node };
  }
  if (!existsSync(named)) return { fault: `--node ${named}: there is no such file` };
  return existsSync(licenceOf(named))
    ? { node: named }
    : {
        fault: `--node ${named}: its licence goes into the packages, and ${licenceOf(named)} is missing. Unpack a whole archive of nodejs.org and name its bin/node.`,
      };
}

function notInstalled(arch) {
  return [
    `the pinned Node is not whole in node_modules: node-linux-${arch} with bin/node and LICENSE is missing. The install script of the npm package \`node\` brings it; whatever took it away since, npm install alone does not bring it again.`,
    "  bring it again:   rm -r node_modules/node && npm install --no-save",
    "  or name another:  npm run package -- --node DIR/bin/node     (an unpacked archive of nodejs.org)",
  ].join("\n");
}
