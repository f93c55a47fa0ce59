// Warns of what this process serves without, and the next start would miss: the settings file, the file of the secret, the authority of central. Somebody who removed or broke one of
// them learns it while there is time to put it back, and not by a restart.

import { closeSync, constants, openSync, statSync } from "node:fs";
import { sightOf } from "../../base/absent-settings.ts";
import { closedWay } from "../../base/closed-settings.ts";
import type { Health } from "../../base/health.ts";
import type { WarningCode } from "../../base/warning-codes.ts";
import type { Log } from "../../base/log.ts";
import { lostSecret, placeOfSecret, type SecretPlace } from "../../base/lost-secret.ts";
import { loadKnownSettings } from "../../base/settings-file.ts";
import { AccelError, messageOf, systemCode } from "../../core/faults.ts";
import { agentFields, type AgentSettings } from "../settings/fields.ts";
import { exposedSecret, readSecret16 } from "../settings/secret.ts";

export type StartWatchOptions = {
  /** The settings file. */
  readonly config: string;
  /** As this process has them. */
  readonly settings: AgentSettings;
  readonly health: Pick<Health, "raise" | "settle">;
  readonly log: Pick<Log, "warn" | "info">;
};

type Fault = { readonly message: string; readonly hint: string };
type Read = {
  /** What the next start would go by. */
  readonly settings: AgentSettings;
  readonly fault: Fault | undefined;
};

const errorsTold = 3;
/** An error shows the value that it found, however long that is. */
const textCharsMax = 1_000;
const secretBytes = 32;

export class StartWatch {
  readonly #options: StartWatchOptions;
  /** The text of each warning that is in force. */
  readonly #warned = new Map<string, string>();
  #read: Read & { readonly stamp: string | undefined };

  constructor(options: StartWatchOptions) {
    this.#options = options;
    this.#read = { stamp: undefined, settings: options.settings, fault: undefined };
  }

  /** Looks at the files, and reads a settings file that has changed since the last look. */
  look(): void {
    const { settings, fault } = this.#settings();
    this.#tell("settings", fault);
    this.#tell("secret", secretFault(settings.secret16_file));
    this.#tell("authority", authorityFault(settings.central_ca_file));
    this.#tellExposed(settings.secret16_file);
  }

  /** A start would not fail by it; whoever reads the secret can sign in as this deployment site. */
  #tellExposed(path: string): void {
    const { health } = this.#options;
    const code = "secret_exposed";
    const exposed = exposedSource(path);
    if (exposed === undefined) health.settle(code);
    else health.raise(code, "warning", exposed.message, `As root: ${exposed.hint}.`);
    this.#note(code, "secret", exposed?.message);
  }

  /** A file of ten thousand sites takes a while to be read, so one that stays as it is is read once. */
  #settings(): Read {
    const { config, settings } = this.#options;
    const stamp = stampOf(config);
    if (stamp === undefined || stamp !== this.#read.stamp)
      this.#read = { stamp, ...readAgain(config, settings) };
    return this.#read;
  }

  #tell(what: string, fault: Fault | undefined): void {
    const { health } = this.#options;
    const code = "restart_would_fail";
    if (fault === undefined) {
      health.settle(code, what);
      return this.#note(code, what, undefined);
    }
    const text = `the agent serves on, and a restart would fail: ${fault.message}`;
    health.raise(code, "warning", text, fault.hint, what);
    this.#note(code, what, text);
  }

  /** Logs a warning when it begins, when its text changes, and when it ends. */
  #note(code: WarningCode, of: string, text: string | undefined): void {
    const { log } = this.#options;
    const key = `${code} ${of}`;
    if (text === undefined) {
      if (this.#warned.delete(key)) log.info({ code, of }, "settled");
      return;
    }
    if (this.#warned.get(key) !== text) log.warn({ code, of }, text);
    this.#warned.set(key, text);
  }
}

/** Returns what changes with each writing of a file; undefined where it is not there, or not to be seen. */
function stampOf(path: string): string | undefined {
  try {
    const { ino, size, mtimeNs, ctimeNs, mode } = statSync(path, { bigint: true });
    return [ino, size, mtimeNs, ctimeNs, mode].join(" ");
  } catch {
    return undefined;
  }
}

function readAgain(config: string, settings: AgentSettings): Read {
  try {
    return { settings: loadKnownSettings(agentFields, config).settings, fault: undefined };
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    const [message = "", ...errors] = error.message.split("\n").map((line) => line.trim());
    const more = errors.length - errorsTold;
    const told = [...errors.slice(0, errorsTold), ...(more > 0 ? [`and ${more} more`] : [])];
    const whole = told.length === 0 ? message : `${message} ${told.join("; ")}`;
    const text = whole.length > textCharsMax ? `${whole.slice(0, textCharsMax)}…` : whole;
    return { settings, fault: { message: text, hint: error.hint } };
  }
}

/** Says what is wrong with the file of the secret. Of the one that systemd reads for the unit only root sees the content, and everybody how long it is. */
export function secretFault(
  path: string,
  place: SecretPlace = placeOfSecret(path),
): Fault | undefined {
  const lost = lostSecret(path, place);
  if (lost !== undefined) return lost;
  const { shown, source } = place.secret;
  if (path === shown) return shortFault(source);
  try {
    readSecret16(path);
    return undefined;
  } catch (error) {
    if (!(error instanceof AccelError)) throw error;
    return { message: error.message, hint: error.hint };
  }
}

/** Says that others can read the file from which systemd takes the secret. Of another file than the unit's its owner decides, as where a container is given it. */
export function exposedSource(
  path: string,
  place: SecretPlace = placeOfSecret(path),
): Fault | undefined {
  const { shown, source } = place.secret;
  if (path !== shown || sightOf(source) !== "there") return undefined;
  return exposedSecret(source, statSync(source).mode);
}

function shortFault(source: string): Fault | undefined {
  if (sightOf(source) !== "there") return undefined; // A directory that the agent may not enter hides it.
  const { size } = statSync(source);
  if (size >= secretBytes) return undefined;
  return {
    message: `${source} must hold ${secretBytes} lower-case hex characters, and has ${size} bytes`,
    hint: "`accel-agent check` as root says what is wrong with it. While the agent runs, systemd has a copy of what was there at the start: see docs/operations/troubleshooting.md.",
  };
}

function authorityFault(path: string | undefined): Fault | undefined {
  if (path === undefined) return undefined;
  try {
    closeSync(openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
    return undefined;
  } catch (error) {
    const message = `central_ca_file cannot be read: ${messageOf(error)}`;
    const closed = systemCode(error) === "EACCES" ? closedWay(path) : undefined;
    if (closed !== undefined) return { message, hint: `${closed}.` };
    return {
      message,
      hint: `Put ${path} back, with mode 0644, or join again with another code: \`accel-agent join --central URL --replace\`, which writes it.`,
    };
  }
}
