// `npm run package`: the Debian packages accel-common, accel-agent and accel-central, for the architecture of this machine.
// `npm run package -- repo`: an apt repository of the packages that lie in the output directory, signed.
//
// The same commit gives the same packages, byte for byte: every time in a package is the commit's, names are sorted, owners are root, and no digest depends on the machine.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  cpSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { programs } from "../src/start/commands.ts";
import { bashCompletion, fishCompletion, zshCompletion } from "./package/completion.mjs";
import {
  billOfMaterials,
  bundledModules,
  closureOf,
  copyModule,
  copyrightFile,
  describeModule,
} from "./package/contents.mjs";
import { describeLibrary, libraryModule } from "./package/image-library.mjs";
import { instanceUnit } from "./package/instance-unit.ts";
import { manPage } from "./package/man.mjs";
import { licenceOf, missingTool, nodeToPack } from "./package/tools.mjs";

const usage = `npm run package [-- options]             packages of this checkout
npm run package -- repo --sign KEY       an apt repository of the packages in the output directory

  --out DIR         where packages and repository go (default var/packages)
  --version V       their version (default: that of package.json; ahead of its tag with time and commit)
  --level N         how hard xz tries, 0 to 9, or none for no compression (default 6)
  --node FILE       the Node that goes into accel-common, DIR/bin/node of an archive of nodejs.org (default: the one that package.json pins)
  --sign KEY        id or address of a key of gpg, for the repository
`;

const root = resolve(import.meta.dirname, "..");
const described = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
/** What is not in the bundle, as in scripts/build.mjs. */
const external = Object.keys({ ...described.dependencies, ...described.optionalDependencies });
const libDir = "usr/lib/accel-agent";

const summaries = {
  agent: {
    summary: "edge of a deployment site: serves, caches, guards, logs",
    description:
      " Serves the domains of a deployment site from this host: static files, cached\n answers, everything else from the origin. Clears what is told, with proof;\n keeps bots out; ships request logs without loss.\n .\n Nothing is started at installation: settings and secret come first.",
    files: [
      [
        "/etc/accel-agent/agent.yaml",
        "settings; /usr/share/accel-agent/agent.yaml has all of them with their defaults",
      ],
      ["/etc/accel-agent/secret16", "the secret of the deployment site, mode 0600, root's"],
      [
        "/var/lib/accel-agent",
        "state: cache, versions, and request records that central has not taken yet",
      ],
      [
        "/etc/accel-agent/NAME",
        "settings and secret of a further agent of this host, accel-agent@NAME; its state is in /var/lib/accel-agent-NAME",
      ],
    ],
  },
  central: {
    summary: "control service of the edges: customer API, journal, logs",
    description:
      " The customer API, the journal that pushes clears, bots and activations to the\n agents, and the intake of their request logs.\n .\n Nothing is started at installation: settings come first.",
    files: [
      [
        "/etc/accel-central/central.yaml",
        "settings; /usr/share/accel-central/central.yaml has all of them with their defaults",
      ],
      [
        "/var/lib/accel-central",
        "store, blobs, packages, request logs and central.key: back it up",
      ],
    ],
  },
};

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: "string", default: "var/packages" },
      version: { type: "string" },
      level: { type: "string", default: "6" },
      node: { type: "string" },
      sign: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    process.stdout.write(usage);
    return;
  }
  const [what] = positionals;
  if (positionals.length > 1 || (what !== undefined && what !== "repo"))
    fail(`unknown: ${positionals.join(" ")}\n${usage}`);
  const out = resolve(root, values.out);
  if (what === "repo") return makeRepository(out, values.sign);
  if (!/^(?:[0-9]|none)$/.test(values.level)) fail("--level must be 0 to 9, or none");
  await makePackages(out, values);
}

function fail(text) {
  process.stderr.write(`${text}\n`);
  process.exit(1);
}

/** Runs a tool of the system; where it is missing says so in one line. */
function run(tool, args, options = {}) {
  try {
    return execFileSync(tool, args, {
      encoding: "utf8",
      stdio: ["pipe", "pipe", "inherit"],
      ...options,
    });
  } catch (error) {
    return fail(
      error.code === "ENOENT"
        ? missingTool(tool)
        : `${tool} failed: ${error.message.split("\n")[0]}`,
    );
  }
}

const git = (...args) => run("git", args, { cwd: root }).trim();

/** The time of everything in the packages, in seconds: SOURCE_DATE_EPOCH, or the commit's. */
function sourceTime() {
  return Number(process.env.SOURCE_DATE_EPOCH ?? git("log", "-1", "--format=%ct"));
}

/** The time of an index, in seconds. It is not the commit's: apt keeps the index that it has where another one is older. */
const signingTime = () => Number(process.env.SOURCE_DATE_EPOCH ?? Math.floor(Date.now() / 1000));

/** The version of package.json where its tag is checked out; before that, lower than it and rising with each commit. */
function versionHere() {
  const { version } = described;
  if (git("tag", "--points-at", "HEAD").split("\n").includes(`v${version}`)) return version;
  const time = new Date(sourceTime() * 1000).toISOString().replaceAll(/\D/g, "").slice(0, 14);
  return `${version}~git${time}.${git("rev-parse", "--short=8", "HEAD")}`;
}

async function makePackages(out, { version = versionHere(), level, node }) {
  if (!/^[0-9][A-Za-z0-9.+~]*$/.test(version))
    fail(`--version ${version}: digits first, then letters, digits and . + ~`);
  const { node: nodePath, fault } = nodeToPack(root, process.arch, node);
  if (nodePath === undefined) fail(fault);
  const staging = mkdtempSync(join(tmpdir(), "accel-package-"));
  try {
    const dist = join(staging, "dist");
    run("npm", ["run", "--silent", "build", "--", dist], { cwd: root });
    const loaded = closureOf(external, root);
    const library = loaded.find((dir) => dir.endsWith(libraryModule(process.arch)));
    if (library === undefined) fail(`${libraryModule(process.arch)} is not installed: npm install`);
    const modules = [
      ...[...bundledModules(root, dist), ...loaded.filter((dir) => dir !== library)].map(
        describeModule,
      ),
      ...describeLibrary(library),
    ];
    modules.sort((a, b) => (`${a.name} ${a.version}` < `${b.name} ${b.version}` ? -1 : 1));
    modules.unshift(describeNode(nodePath));
    mkdirSync(out, { recursive: true });
    const packer = { out, staging, dist, version, level, modules, arch: debianArch() };
    common(packer, nodePath);
    for (const which of Object.keys(programs)) await program(packer, which);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

const debianArch = () =>
  ({ x64: "amd64", arm64: "arm64" })[process.arch] ?? fail(`no package for ${process.arch}`);

function describeNode(path) {
  const version = run(path, ["--version"]).trim().slice(1);
  return {
    name: "node",
    version,
    license: "MIT",
    texts: [readFileSync(licenceOf(path), "utf8").trim()],
    isNode: true,
  };
}

/** Code, Node and libraries: `package/` is dpkg's, `postinst` makes of it the directory of this version. */
function common(packer, nodePath) {
  const { dist, version, modules } = packer;
  const tree = join(packer.staging, "accel-common");
  const home = join(tree, libDir, "package");
  for (const file of globSync("**/*", { cwd: dist }))
    if (!file.endsWith(".map") && file !== "bundled.json" && statSync(join(dist, file)).isFile())
      copy(join(dist, file), join(home, "dist", file));
  const node = join(home, "bin/node");
  copy(nodePath, node, 0o755);
  run("strip", ["--strip-all", node]);
  for (const dir of closureOf(external, root))
    copyModule(dir, join(home, relative(root, dir)), process.arch);
  write(
    join(home, "package.json"),
    `${JSON.stringify({ name: "accel-agent", version, type: "module" })}\n`,
  );
  write(join(home, "VERSION"), `${version}\n`);
  const doc = join(tree, "usr/share/doc/accel-common");
  write(
    join(doc, "copyright"),
    copyrightFile(readFileSync(join(root, "LICENSE"), "utf8"), modules),
  );
  write(
    join(doc, "sbom.cdx.json"),
    `${JSON.stringify(billOfMaterials(version, modules), null, 2)}\n`,
  );
  for (const file of ["accel.rules.yml", "accel-dashboard.json"])
    copy(
      join(root, "packaging/monitoring", file),
      join(tree, "usr/share/accel-common/monitoring", file),
    );
  write(join(doc, "changelog.gz"), gzip(readFileSync(join(root, "CHANGELOG.md"))));
  for (const file of globSync("{*.md,guides/*,operations/*}", { cwd: join(root, "docs") }))
    copy(join(root, "docs", file), join(doc, file));
  finish(packer, "accel-common", packer.arch, tree, {}, "accel-common");
}

/** The command, the unit, the settings to copy from, man page and completions of one program. */
async function program(packer, which) {
  const name = `accel-${which}`;
  const { summary, description, files } = summaries[which];
  const tree = join(packer.staging, name);
  const commands = [];
  for (const [command, { summary: line, load }] of Object.entries(programs[which]))
    commands.push({ name: command, summary: line, command: await load() });
  const fields = { PACKAGE: name, PROGRAM: which, SUMMARY: summary, DESCRIPTION: description };
  write(
    join(tree, "usr/bin", name),
    filled("accel-program/launcher", { ...packer, fields }),
    0o755,
  );
  copy(join(root, `systemd/${name}.service`), join(tree, `lib/systemd/system/${name}.service`));
  if (which === "agent") {
    const unit = readFileSync(join(root, "systemd/accel-agent.service"), "utf8");
    write(join(tree, "lib/systemd/system/accel-agent@.service"), instanceUnit(unit));
    for (const file of ["accel-agent-rollout.path", "accel-agent-rollout.service"])
      copy(join(root, "systemd", file), join(tree, "lib/systemd/system", file));
    const installer = "accel-agent-rollout/install-release";
    copy(
      join(root, "packaging", installer),
      join(tree, "usr/libexec/accel-agent/install-release"),
      0o755,
    );
  }
  copy(join(root, `config/${which}.yaml`), join(tree, `usr/share/${name}/${which}.yaml`));
  const date = new Date(sourceTime() * 1000).toISOString().slice(0, 10);
  const page = manPage({ program: name, summary, version: packer.version, date, commands, files });
  write(join(tree, `usr/share/man/man8/${name}.8.gz`), gzip(page));
  write(join(tree, "usr/share/bash-completion/completions", name), bashCompletion(name, commands));
  write(join(tree, "usr/share/zsh/vendor-completions", `_${name}`), zshCompletion(name, commands));
  write(
    join(tree, "usr/share/fish/vendor_completions.d", `${name}.fish`),
    fishCompletion(name, commands),
  );
  write(
    join(tree, "usr/share/doc", name, "copyright"),
    copyrightFile(readFileSync(join(root, "LICENSE"), "utf8"), []),
  );
  finish(packer, name, "all", tree, fields, "accel-program");
}

const gzip = (data) => gzipSync(data, { level: 9 });

function write(path, data, mode = 0o644) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, data);
  chmodSync(path, mode);
}

function copy(from, to, mode = 0o644) {
  mkdirSync(dirname(to), { recursive: true });
  cpSync(from, to, { dereference: true });
  chmodSync(to, mode);
}

/** A template of `packaging/` with what stands between `@` filled in. */
function filled(template, { version, arch, fields }, more = {}) {
  const values = { VERSION: version, ARCH: arch, ...fields, ...more };
  return readFileSync(join(root, "packaging", template), "utf8").replaceAll(
    /@([A-Z]+)@/g,
    (_, key) => values[key] ?? fail(`${template}: nothing is known for @${key}@`),
  );
}

/** Writes the control files and packs the tree. */
function finish(packer, name, arch, tree, fields, templates) {
  const paths = globSync("**/*", { cwd: tree }).toSorted();
  const isFile = (path) => statSync(join(tree, path)).isFile();
  for (const path of paths) if (!isFile(path)) chmodSync(join(tree, path), 0o755);
  chmodSync(tree, 0o755);
  const files = paths.filter(isFile);
  const digest = (path) =>
    createHash("md5")
      .update(readFileSync(join(tree, path)))
      .digest("hex");
  const sums = files.map((path) => `${digest(path)}  ${path}\n`).join("");
  const kib = files.reduce(
    (sum, path) => sum + Math.ceil(statSync(join(tree, path)).size / 1024),
    0,
  );
  for (const script of readdirSync(join(root, "packaging", templates))) {
    if (script === "launcher") continue;
    const text = filled(`${templates}/${script}`, { ...packer, fields }, { SIZE: String(kib) });
    write(join(tree, "DEBIAN", script), text, script === "control" ? 0o644 : 0o755);
  }
  write(join(tree, "DEBIAN/md5sums"), sums);
  chmodSync(join(tree, "DEBIAN"), 0o755);
  const file = join(packer.out, `${name}_${packer.version}_${arch}.deb`);
  // One thread: how xz cuts its blocks would depend on the processors otherwise.
  const xz = ["-Zxz", `-z${packer.level}`, "--threads-max=1"];
  const how = ["--root-owner-group", ...(packer.level === "none" ? ["-Znone"] : xz)];
  run("dpkg-deb", [...how, "--build", tree, file], {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(sourceTime()) },
  });
  process.stdout.write(
    `${relative(process.cwd(), file)} ${(statSync(file).size / 1e6).toFixed(1)} MB\n`,
  );
}

/** `Packages`, `Release` and their signatures beside the packages: `deb [signed-by=…] URL ./` takes them. */
function makeRepository(out, key) {
  if (key === undefined)
    fail(`--sign is missing: apt takes no repository without a signature\n${usage}`);
  const debs = globSync("*.deb", { cwd: out }).toSorted();
  if (debs.length === 0) fail(`${out} has no packages: npm run package makes them`);
  const sha256 = (data) => createHash("sha256").update(data).digest("hex");
  const entries = debs.map((deb) => {
    const data = readFileSync(join(out, deb));
    const control = run("dpkg-deb", ["--field", join(out, deb)]).trimEnd();
    const [head, ...rest] = control.split("\nDescription:");
    return `${head}\nFilename: ./${deb}\nSize: ${data.byteLength}\nSHA256: ${sha256(data)}\nDescription:${rest.join("\nDescription:")}\n`;
  });
  const list = entries.join("\n");
  write(join(out, "Packages"), list);
  write(join(out, "Packages.gz"), gzip(list));
  const indexes = ["Packages", "Packages.gz"].map((file) => {
    const data = readFileSync(join(out, file));
    return ` ${sha256(data)} ${data.byteLength} ${file}`;
  });
  const release = [
    "Origin: accel-agent",
    "Label: accel-agent",
    "Suite: stable",
    `Date: ${new Date(signingTime() * 1000).toUTCString().replace("GMT", "+0000")}`,
    "Architectures: amd64 arm64",
    "SHA256:",
    ...indexes,
    "",
  ].join("\n");
  write(join(out, "Release"), release);
  for (const file of ["InRelease", "Release.gpg"]) rmSync(join(out, file), { force: true });
  const sign = ["--batch", "--yes", "--local-user", key, "--digest-algo", "SHA256"];
  run("gpg", [...sign, "--clearsign", "--output", join(out, "InRelease"), join(out, "Release")]);
  run("gpg", [
    ...sign,
    "--armor",
    "--detach-sign",
    "--output",
    join(out, "Release.gpg"),
    join(out, "Release"),
  ]);
  write(join(out, "accel-agent.asc"), run("gpg", ["--batch", "--armor", "--export", key]));
  process.stdout.write(
    `${relative(process.cwd(), out)}: ${debs.length} packages, ${basename(out)}/accel-agent.asc is the key to trust\n`,
  );
}

await main();
