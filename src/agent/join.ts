// `accel-agent join`: makes this host part of a deployment site. Settings are judged before the code is used, and files are
// written after central has accepted what will stand in them, so a failure leaves the host as it was.
//
// The nonce of the exchange is on disk before the code is sent. A join that was killed, or whose answer was lost, is given again with the
// same code and takes no second use of it.

import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { closedDirectories } from "../base/closed-settings.ts";
import { readArgs, type Command, type CommandContext } from "../base/command.ts";
import { ensureDirectory, writeDurable } from "../base/durable-file.ts";
import {
  adviceFor,
  agentProgram,
  configOf,
  placeOfConfig,
  placeOptions,
  type UnitPlace,
} from "../base/instance.ts";
import { environmentText, proxyFor, takeEnvironment } from "../base/proxy.ts";
import { readSecret } from "../base/secret-input.ts";
import { peekSetting } from "../base/settings-file.ts";
import { withKeys } from "../base/settings-text.ts";
import { readSettings } from "../base/settings.ts";
import { AccelError, FAULTS, messageOf, systemCode } from "../core/faults.ts";
import { parseJson } from "../core/journal/json-text.ts";
import { parseName16, parseSecret16, sha256Of } from "../core/ids.ts";
import { readCode } from "../wire/enrolment.ts";
import { sharedPorts, takenPorts } from "./doctor/ports.ts";
import { hostOf } from "./examining.ts";
import { CentralClient } from "./link/central-client.ts";
import { enrolHost, fetchAuthority, newNonce } from "./link/enrol.ts";
import { meantAgent, movedFault } from "./moved-agent.ts";
import { fixedSecret } from "./link/site-secret.ts";
import { agentFields, type AgentSettings } from "./settings/fields.ts";
import { takenPortsFault } from "./taken-ports.ts";
import { readSecret16 } from "./settings/secret.ts";

const everyKey = "/usr/share/accel-agent/agent.yaml";

const options = {
  ...placeOptions,
  central: { type: "string" },
  "code-file": { type: "string" },
  "ca-file": { type: "string" },
  name16: { type: "string" },
  "secret-file": { type: "string" },
  "no-start": { type: "boolean", default: false },
  replace: { type: "boolean", default: false },
} as const;

type Values = ReturnType<typeof readArgs<typeof options>>["values"];

export const joinCommand: Command = {
  summary:
    "Makes this host part of a deployment site: gets its name and secret for a code, writes settings and secret, and starts the agent now and at each boot.",
  usage: [
    "accel-agent join --central URL [--code-file FILE] [options]",
    "accel-agent join --central URL --name16 NAME --secret-file FILE [options]",
    "",
    "  --central URL     central's address, such as https://central.example.com",
    "  --code-file FILE  the file with the code; without it the code is the first line of standard input, and asked for on a terminal",
    "  --name16 NAME     the name16 of the deployment site, where there is no code",
    "  --secret-file FILE  the file with its secret16",
    "  --ca-file FILE    the authority (PEM) to trust for central; most codes carry what is needed",
    "  --config FILE     settings to write or to complete (default /etc/accel-agent/agent.yaml); secret16 is written beside it",
    "  --instance NAME   a further agent of this host, with ports of its own: /etc/accel-agent/NAME/agent.yaml, accel-agent@NAME.service",
    "  --no-start        neither enable nor start the unit",
    "  --replace         take this agent of the host away from the deployment site that it belongs to, or join that one again",
    "",
    "`accel-central site enrol` makes a code, and so does POST /deployment-site/ID/enrolment/ of the customer API.",
    "If a join fails, give it again with the same code. Other keys of a settings file that is there stay as they are.",
  ].join("\n"),
  async run(context) {
    const { values, positionals } = readArgs(context.args, options, 1);
    if (positionals.length > 0)
      throw new AccelError(
        "USAGE",
        "a code is no argument, which every user of this host could read: pipe it in, type it when asked, or name a --code-file",
      );
    await joinHost(values, context).catch((error: unknown) => {
      throw unreached(error) ?? error;
    });
  },
};

/** Makes of a failure to reach central one whose hint is true on a host without an agent; undefined for any other. */
function unreached(error: unknown): AccelError | undefined {
  if (!(error instanceof AccelError) || error.code !== "CENTRAL_UNREACHABLE") return undefined;
  const { code, message, hint: said } = error;
  const check =
    said === FAULTS[code].hint
      ? "Check the address after --central, DNS, the firewalls between, and central's certificate."
      : said;
  const hint = `${check} Then join again, with the same code if there is one: it stays good until it ends.`;
  return new AccelError(code, message, { cause: error, hint });
}

async function joinHost(values: Values, context: CommandContext): Promise<void> {
  process.umask(0o022); // What the agent's own user is to read it may read, whatever the umask of root's shell is.
  const host = joiningOf(values);
  if (host.place !== undefined) takeEnvironment(host.place.environment);
  const taken = values.replace ? undefined : takenFault(host);
  // A join that is given again may find what it wrote itself; its code tells.
  if (taken !== undefined && (values.name16 !== undefined || !existsSync(host.pendingFile)))
    throw taken;
  const ca = trustedOf(host, values);
  // What is wrong with the file that is there is told before a code is used.
  const expected = settingsText(host, { name16: "0".repeat(16), hasCa: false });
  refuseClosed(host);
  await portsFree(host, judged(host, expected), values["no-start"], context.stop);
  const { name16, secret16, caPem } =
    values.name16 === undefined
      ? await byCode(host, values, { ca, taken }, context)
      : { ...bySecret(values.name16, values), caPem: ca.given ?? ca.before() };
  const name16Before = peekSetting(host.config, "name16");
  refuseMoved(host, { name16, name16Before }, context.stop);
  const settings = settingsText(host, { name16, hasCa: caPem !== undefined });
  judged(host, settings);
  const siteId = await proveSecret({ name16, secret16, caPem, host }, context.stop);

  const proxied = proxyFile(host);
  await writing(host, async () => {
    await ensureDirectory(host.directory, 0o755);
    removeStaged(host.directory);
    if (caPem !== undefined) await writeDurable(host.caFile, caPem, 0o644);
    await writeDurable(host.secretFile, `${secret16}\n`, 0o600);
    if (proxied !== undefined) await writeDurable(proxied.path, proxied.text, 0o600);
    await writeDurable(host.config, settings, 0o644);
  });
  rmSync(host.pendingFile, { force: true });
  const written = [
    host.config,
    host.secretFile,
    ...(caPem === undefined ? [] : [host.caFile]),
    ...(proxied === undefined ? [] : [proxied.path]),
  ];
  const isMoved = name16Before !== undefined && name16Before !== name16;
  const moved = isMoved ? `; it left the one with name16 ${name16Before}` : "";
  context.out(
    `deployment site ${siteId} (name16 ${name16}): joined at ${host.centralUrl}${moved}\nwritten: ${written.join(", ")}\n`,
  );
  context.out(await start(host, values["no-start"]));
}

/** Where a host has what it needs. */
type Host = {
  readonly centralUrl: string;
  readonly config: string;
  readonly directory: string;
  readonly secretFile: string;
  readonly caFile: string;
  readonly pendingFile: string;
  /** Whose files these are of the systemd units; undefined: none's. */
  readonly place: UnitPlace | undefined;
  /** The settings that are there. */
  readonly before: string | undefined;
};

function joiningOf({ central, ...told }: Values): Host {
  if (central === undefined) throw new AccelError("USAGE", "--central takes central's address");
  const url = agentFields.central_url.parse(central);
  if (!url.ok) throw new AccelError("USAGE", `--central ${central}: ${url.reason}`);
  const config = resolve(configOf(told));
  const directory = dirname(config);
  return {
    centralUrl: url.value,
    config,
    directory,
    secretFile: join(directory, "secret16"),
    caFile: join(directory, "central-ca.pem"),
    pendingFile: join(directory, "join.pending"),
    place: placeOfConfig(agentProgram, config),
    before: existsSync(config) ? readGiven("--config", config) : undefined,
  };
}

/** Returns what is wrong with a join of a host that belongs to a site already. */
function takenFault({ centralUrl, config, place, secretFile }: Host): AccelError | undefined {
  const name16 = peekSetting(config, "name16");
  if (name16 === undefined || !existsSync(secretFile)) return undefined;
  const isSame = peekSetting(config, "central_url") === centralUrl;
  const { hint } = FAULTS.HOST_TAKEN;
  return new AccelError(
    "HOST_TAKEN",
    isSame
      ? `this host has already joined at ${centralUrl}, as part of the deployment site with name16 ${name16} (${config})`
      : `this host belongs to the deployment site with name16 ${name16} (${config})`,
    { hint: place === undefined ? hint : adviceFor(place, hint) },
  );
}

/**
 * Authorities (PEM) to trust for central: the one that was given, and the one of the settings that are there. That one is
 * read only where there is no other, for its file may be gone.
 */
type Trusted = { readonly given: string | undefined; readonly before: () => string | undefined };

function trustedOf({ config }: Host, { "ca-file": file }: Values): Trusted {
  return {
    given: file === undefined ? undefined : readGiven("--ca-file", file),
    before() {
      const path = peekSetting(config, "central_ca_file");
      return path === undefined ? undefined : readGiven("central_ca_file", path);
    },
  };
}

function readGiven(option: string, path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new AccelError("FILE_UNUSABLE", `${option} cannot be read: ${messageOf(error)}`);
  }
}

function settingsText(
  host: Host,
  { name16, hasCa }: { readonly name16: string; readonly hasCa: boolean },
): string {
  const keys = {
    central_url: host.centralUrl,
    name16,
    // Without one, that of the settings that are there stays.
    ...(hasCa && { central_ca_file: host.caFile }),
    ...keysOfPlace(host),
  };
  const where = existsSync(everyKey) ? everyKey : "config/agent.yaml";
  return withKeys(
    host.before,
    keys,
    `Written by \`accel-agent join\`. Every other key, its meaning and its default: ${where}`,
  );
}

/** The plain unit finds secret and state by default; an instance is told where it has them. */
function keysOfPlace({ config, place, secretFile }: Host): Record<string, string | undefined> {
  if (place === undefined) return { secret16_file: secretFile };
  if (place.instance === undefined) return { secret16_file: undefined };
  return {
    secret16_file: place.secret.shown,
    state_dir: peekSetting(config, "state_dir") ?? place.stateDir,
  };
}

/** Returns what the unit needs to find the proxy that this join went through; undefined: it went through none, or there is no unit. */
function proxyFile({ centralUrl, place }: Host): { path: string; text: string } | undefined {
  const proxy = proxyFor(new URL(centralUrl));
  if (proxy === undefined || place === undefined) return undefined;
  const head = "# Written by `accel-agent join`, which reached central through this proxy.\n";
  return { path: place.environment, text: head + environmentText(proxy) };
}

/** Throws SETTINGS_INVALID with a line for each error of the settings. */
function judged({ config }: Host, text: string): AgentSettings {
  const read = readSettings(agentFields, text, "refused");
  if (read.ok) return read.settings;
  const lines = read.errors.map(
    ({ line, key, message }) => `  ${config}:${line}: ${key} ${message}`,
  );
  throw new AccelError(
    "SETTINGS_INVALID",
    `the settings file ${config} is not valid:\n${lines.join("\n")}`,
  );
}

/** Throws FILE_UNUSABLE where the unit's own user may not come to where the settings will be. */
function refuseClosed({ config }: Host): void {
  const closed = closedDirectories(config);
  if (closed === undefined) return;
  const { message, hint } = closed;
  const text = `nothing was changed and no code was used, for the agent, which has a user of its own, could not read ${config}: ${message}`;
  throw new AccelError("FILE_UNUSABLE", text, { hint: `${hint}; then join again` });
}

/** Throws PORT_TAKEN, with the ports to write instead, where another agent of this host has one of these, or whoever else listens on it. */
async function portsFree(
  { config, place }: Host,
  settings: AgentSettings,
  isLeft: boolean,
  stop: AbortSignal,
): Promise<void> {
  if (place === undefined) return;
  const host = hostOf(config, stop);
  const shared = sharedPorts(settings, host);
  const listened = isLeft || !hasSystemd() ? [] : await takenPorts(settings, host);
  const taken = [
    ...shared,
    ...listened.filter(({ key }) => !shared.some((one) => one.key === key)),
  ];
  if (taken.length === 0) return;
  throw takenPortsFault({ config, settings, others: host.others() }, taken);
}

/** Throws HOST_TAKEN where another agent of this host was meant; the nonce of the exchange goes there, so that the same code is good for it. */
function refuseMoved(
  { config, centralUrl, pendingFile }: Host,
  { name16, name16Before }: { readonly name16: string; readonly name16Before: string | undefined },
  stop: AbortSignal,
): void {
  const command = { config, name16: name16Before };
  const others = hostOf(config, stop).others();
  const named = others.map((other) => ({ config: other.config, name16: other.settings.name16 }));
  const meant = meantAgent(command, name16, named);
  if (meant === undefined) return;
  if (existsSync(pendingFile))
    renameSync(pendingFile, join(dirname(meant.config), basename(pendingFile)));
  throw movedFault(command, meant, centralUrl);
}

type Credentials = { readonly name16: string; readonly secret16: string };

function bySecret(name16: string, values: Values): Credentials {
  if (values["code-file"] !== undefined)
    throw new AccelError("USAGE", "--code-file and --name16 do not go together");
  if (parseName16(name16) === undefined)
    throw new AccelError("USAGE", `--name16 takes 16 lower-case hex characters, not ${name16}`);
  if (values["secret-file"] === undefined)
    throw new AccelError("USAGE", "--name16 goes with --secret-file FILE");
  return { name16, secret16: readSecret16(values["secret-file"]) };
}

async function byCode(
  host: Host,
  values: Values,
  { ca, taken }: { readonly ca: Trusted; readonly taken: AccelError | undefined },
  { stop }: CommandContext,
): Promise<Credentials & { readonly caPem: string | undefined }> {
  if (values["secret-file"] !== undefined)
    throw new AccelError("USAGE", "--secret-file goes with --name16 NAME");
  const file = values["code-file"];
  const text =
    file === undefined
      ? await readSecret(
          "code",
          process.stdin,
          (said) => void process.stderr.write(said),
          stop,
          "once",
        )
      : readGiven("--code-file", file);
  const read = readCode(text);
  if (!read.ok) throw new AccelError("USAGE", read.reason);
  const { code, authorityDigest } = read;
  if (taken !== undefined && nonceBefore(host, code) === undefined) throw taken;
  const isHttps = host.centralUrl.startsWith("https:");
  const caPem =
    ca.given ??
    (isHttps && authorityDigest !== undefined
      ? await fetchAuthority(host.centralUrl, authorityDigest, stop)
      : ca.before());
  const nonce = nonceBefore(host, code) ?? (await newPending(host, code));
  const { centralUrl } = host;
  const exchange = { centralUrl, code, nonce, caPem, signal: stop };
  return { ...(await enrolHost(exchange)), caPem };
}

/** Returns the nonce of a join before with this code. */
function nonceBefore({ pendingFile }: Host, code: string): string | undefined {
  if (!existsSync(pendingFile)) return undefined;
  const before = parseJson(readGiven("the join before", pendingFile));
  const { code_digest: digest, nonce } = Object(before) as Record<string, unknown>;
  return digest === sha256Of(code) && typeof nonce === "string" ? parseSecret16(nonce) : undefined;
}

/** Returns the nonce of a new exchange, which is on disk. */
async function newPending(host: Host, code: string): Promise<string> {
  const nonce = newNonce();
  await writing(host, async () => {
    await ensureDirectory(host.directory, 0o755);
    const pending = { code_digest: sha256Of(code), nonce };
    await writeDurable(host.pendingFile, `${JSON.stringify(pending)}\n`, 0o600);
  });
  return nonce;
}

/** Removes what a join that was killed had begun to write: it may hold the secret. */
function removeStaged(directory: string): void {
  for (const name of readdirSync(directory))
    if (
      /^(?:secret16|agent\.yaml|central-ca\.pem|join\.pending|environment)\.[0-9a-f]{12}\.tmp$/.test(
        name,
      )
    )
      rmSync(join(directory, name), { force: true });
}

async function writing({ directory }: Host, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (error) {
    const isDenied = ["EACCES", "EPERM"].includes(systemCode(error) ?? "");
    throw new AccelError(
      "FILE_UNUSABLE",
      `${directory} cannot be written: ${messageOf(error)}${isDenied ? "; join as root" : ""}`,
    );
  }
}

/** Signs in once with what will be written. Returns the number of the deployment site. */
async function proveSecret(
  given: Credentials & { readonly caPem: string | undefined; readonly host: Host },
  stop: AbortSignal,
): Promise<number> {
  const { centralUrl } = given.host;
  const [name16, secret16] = [parseName16(given.name16), parseSecret16(given.secret16)];
  if (name16 === undefined || secret16 === undefined)
    throw new AccelError("MESSAGE_INVALID", "central gave a name16 or secret16 of another form");
  await using client = new CentralClient({
    centralUrl,
    caPem: given.caPem,
    name16,
    secret: fixedSecret(secret16),
    stop,
  });
  return (await client.token()).deploymentSiteId;
}

const hasSystemd = (): boolean => existsSync("/run/systemd/system");

/** Enables and starts the unit. Returns what is to be said about it. Throws UNIT_NOT_STARTED. */
async function start({ config, place }: Host, isLeft: boolean): Promise<string> {
  if (place === undefined || !hasSystemd())
    return `start it with: accel-agent run --config ${config}\n`;
  const { unit, instance } = place;
  if (isLeft) return `start it with: systemctl enable --now ${unit}\n`;
  try {
    await promisify(execFile)("systemctl", ["enable", "--quiet", unit]);
    // An agent that runs has the settings from before.
    await promisify(execFile)("systemctl", ["restart", unit]);
  } catch (error) {
    const { stderr = "" } = Object(error) as { stderr?: string };
    throw new AccelError(
      "UNIT_NOT_STARTED",
      `${unit} does not start: ${stderr.trim() || messageOf(error)}`,
    );
  }
  const named = instance === undefined ? "" : ` --instance ${instance}`;
  return `the agent runs, and starts at each boot: accel-agent status${named}\n`;
}
