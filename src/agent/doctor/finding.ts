// What a check of the doctor says: one line of what it found and, unless all is well, what to do about it.

import type { UnitPlace } from "../../base/instance.ts";
import type { AgentSettings } from "../settings/fields.ts";
import type { AccelError } from "../../core/faults.ts";
import type { InstallerOutcome } from "../../core/rollout/order-heeding.ts";
import type { ReleaseStanding } from "../../core/rollout/rollout.ts";

export type FindingState = "ok" | "warning" | "failed" | "skipped";

export type Finding = {
  /** The name of the check: `ports`, for example. */
  readonly check: string;
  readonly state: FindingState;
  readonly text: string;
  readonly hint?: string;
};

/** What a check knows of the host beside the settings; tests put another host in its place. */
export type Host = {
  /** The settings file that is looked at. */
  readonly config: string;
  readonly place: UnitPlace;
  /** The id of the user that asks. */
  readonly uid: number;
  /** Returns the text of a file below /proc or /etc; undefined where it cannot be read. */
  readonly read: (path: string) => string | undefined;
  /** Returns the properties of the systemd unit; undefined where there is none. */
  readonly unit: () => Promise<ReadonlyMap<string, string> | undefined>;
  /** The other agents of this host that the packages' units start. */
  readonly others: () => readonly { readonly config: string; readonly settings: AgentSettings }[];
  /** Asks the agent of these settings how it is, once however often this is called. */
  readonly agent: () => Promise<AgentSeen>;
  /** What installs releases for the agent of this state directory; undefined: nothing does. */
  readonly installer: (stateDir: string) => Installer | undefined;
  /** Starts the encoder of pictures for a moment, as the agent would. */
  readonly encoder: (settings: AgentSettings) => Promise<EncoderSeen>;
};

export type EncoderSeen =
  | { readonly kind: "opened"; readonly versions: Readonly<Record<string, string>> }
  | { readonly kind: "absent" | "failed"; readonly reason: string };

export type Installer = {
  /** Whether the operator lets central install releases. */
  takes(): ReleaseStanding["takes"];
  /** What came of the last one. */
  outcome(): InstallerOutcome | undefined;
};

/** `error` is why it is disconnected, where it knows. */
export type LinkSeen = { readonly state: string; readonly error: string | undefined };

/** What asking the agent how it is led to. Its kinds are told apart by who has to do what. */
export type AgentSeen =
  | {
      readonly kind: "answers";
      readonly isReady: boolean;
      /** The codes of its warnings and errors. */
      readonly warnsOf: readonly string[];
      /** What it says of its own way to central; undefined where it says nothing. */
      readonly link: LinkSeen | undefined;
      /** Whether it was asked for a picture, and found no encoder. */
      readonly isEncoderMissed: boolean;
    }
  /** It accepts connections and does not answer. */
  | { readonly kind: "hangs"; readonly reason: string }
  /** This user may not ask it; whether it runs is not known. */
  | { readonly kind: "denied" }
  | { readonly kind: "absent" };

/** Makes the findings of one check. */
export function findingsOf(check: string) {
  return {
    ok: (text: string): Finding => ({ check, state: "ok", text }),
    warning: (text: string, hint: string): Finding => ({ check, state: "warning", text, hint }),
    failed: (text: string, hint: string): Finding => ({ check, state: "failed", text, hint }),
    skipped: (text: string): Finding => ({ check, state: "skipped", text }),
    fault: ({ message, hint }: AccelError): Finding => ({
      check,
      state: "failed",
      text: message,
      hint,
    }),
  };
}

/** Says for a check that a user who is not root does not see what it looks at. */
export const unseen = (check: string, what: string): Finding =>
  findingsOf(check).skipped(`${what}: give the command as root`);

const marks = { ok: "ok  ", warning: "warn", failed: "FAIL", skipped: "–   " } as const;
const colours = { ok: 32, warning: 33, failed: 31, skipped: 90 } as const;

/** Writes findings for a person. */
export function findingLines(findings: readonly Finding[], colour: boolean): string {
  const width = Math.max(...findings.map(({ check }) => check.length));
  return findings
    .map(({ check, state, text, hint }) => {
      const mark = colour ? `\u001B[${colours[state]}m${marks[state]}\u001B[0m` : marks[state];
      const indent = " ".repeat(width + 7);
      const said = text.replaceAll("\n", `\n${indent}`);
      const more =
        hint === undefined ? "" : `${indent}→ ${hint.replaceAll("\n", `\n${indent}  `)}\n`;
      return `${mark} ${check.padEnd(width)}  ${said}\n${more}`;
    })
    .join("");
}
