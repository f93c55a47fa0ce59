// What the packages consist of beside our own code: the modules in the bundle, those that stay outside of it, and Node; with their licences.

import { cpSync, existsSync, globSync, mkdirSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join, sep } from "node:path";

const readJson = (path) => JSON.parse(readFileSync(path, "utf8"));

/** Finds a module as `from` would load it. */
function findModule(name, from) {
  for (let dir = from; ; dir = dirname(dir)) {
    const found = join(dir, "node_modules", name);
    if (existsSync(join(found, "package.json"))) return found;
    if (dirname(dir) === dir) return undefined;
  }
}

function directoryOf(name, from) {
  const found = findModule(name, from);
  if (found === undefined) throw new Error(`${name} is not installed: npm install`);
  return found;
}

/** Modules that only a build from sources needs. */
const buildOnly = new Set(["node-addon-api"]);

/** Whether a module is for Linux with glibc and this processor, or for any. */
function isForHere({ os = ["linux"], cpu = [process.arch], libc = ["glibc"] }) {
  return os.includes("linux") && cpu.includes(process.arch) && libc.includes("glibc");
}

/** The optional dependencies of a module that are installed, and meant for this machine's processor. */
function optionalOf({ optionalDependencies = {} }, from) {
  return Object.keys(optionalDependencies).filter((name) => {
    const dir = findModule(name, from);
    return dir !== undefined && isForHere(readJson(join(dir, "package.json")));
  });
}

/** The directories of these modules and of everything they load, sorted. Of optional dependencies it is what this machine's processor loads. */
export function closureOf(names, root) {
  const found = new Map();
  const visit = (name, from) => {
    const dir = directoryOf(name, from);
    if (found.has(dir)) return;
    found.set(dir, name);
    const described = readJson(join(dir, "package.json"));
    for (const next of [
      ...Object.keys(described.dependencies ?? {}),
      ...optionalOf(described, dir),
    ])
      if (!buildOnly.has(next)) visit(next, dir);
  };
  for (const name of names) visit(name, root);
  return [...found.keys()].toSorted();
}

/** Copies what a module needs at run time: code, its description, its licence, and of prebuilt files this machine's. */
export function copyModule(from, to, arch) {
  const prebuilt = `prebuilds${sep}linux-${arch}.node`;
  const leftOut = new Set([
    "scripts",
    "test.js",
    "example.js",
    "benchmark.js",
    "eslint.config.js",
    "test",
    "tests",
    "docs",
    "benchmarks",
    "examples",
    "deps",
    "src",
    "install",
    ".github",
  ]);
  for (const file of globSync("**/*", { cwd: from })) {
    const [first] = file.split(sep);
    if (leftOut.has(first) || file.includes(`node_modules${sep}`)) continue;
    const isCode = /\.(?:c|m)?js$/.test(file) || file === "package.json" || isLicence(file);
    const isNative = file === prebuilt || /^lib\/[^/]+\.(?:node|so[.\d]*)$/.test(file);
    if (!isCode && !isNative && file !== "versions.json") continue;
    mkdirSync(dirname(join(to, file)), { recursive: true });
    cpSync(join(from, file), join(to, file));
  }
  if (existsSync(join(from, "prebuilds")) && !existsSync(join(to, prebuilt)))
    throw new Error(`${from} has no ${prebuilt}`);
}

const isLicence = (file) => /^(?:licen[cs]e|copying|notice)/i.test(file);

/** Name, version, licence and licence texts of the module in a directory. */
export function describeModule(dir) {
  const { name, version, license } = readJson(join(dir, "package.json"));
  const texts = readdirSync(dir)
    .filter(isLicence)
    .toSorted()
    .map((file) => readFileSync(join(dir, file), "utf8").trim());
  return { name, version, license: typeof license === "string" ? license : "see text", texts };
}

/** The directories of the modules that the bundle in `dist` contains, as `scripts/build.mjs` noted them. */
export function bundledModules(root, dist) {
  return readJson(join(dist, "bundled.json")).map((path) => join(root, path));
}

/** The file `copyright` of a package: our licence, then those of all that it contains. */
export function copyrightFile(own, modules) {
  const parts = [
    `accel-agent and accel-central\n\n${own}`,
    ...modules
      .filter(({ isPart }) => isPart !== true)
      .map(({ name, version, license, texts }) =>
        [`${name} ${version} (${license})`, ...texts].join("\n\n"),
      ),
  ];
  return `${parts.map((part) => part.trim()).join(`\n\n${"-".repeat(78)}\n\n`)}\n`;
}

/** The bill of materials, CycloneDX 1.5. It names no time and no number of its own, so that two builds agree. */
export function billOfMaterials(version, modules) {
  return {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
      component: {
        type: "application",
        name: "accel-agent",
        version,
        licenses: licensesOf("Apache-2.0"),
      },
    },
    components: modules.map(({ name, version: of, license, isNode, isPart }) => ({
      type: isNode === true ? "platform" : "library",
      name,
      version: of,
      purl:
        isNode === true || isPart === true
          ? `pkg:generic/${name}@${of}`
          : `pkg:npm/${name.replace("@", "%40")}@${of}`,
      licenses: licensesOf(license),
    })),
  };
}

const licensesOf = (license) =>
  / (?:AND|OR|WITH) /.test(license) ? [{ expression: license }] : [{ license: { id: license } }];
