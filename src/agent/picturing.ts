// Opens what makes pictures smaller: the encoder process, the day's numbers in agent.db, and the desk at which workers ask.

import { createRequire } from "node:module";
import { entryUrl } from "../base/entry.ts";
import type { Instruments } from "../base/metrics.ts";
import { DayBudget } from "./images/day-budget.ts";
import { EncoderProcess } from "./images/encoder-child.ts";
import { ImageDesk } from "./images/image-desk.ts";
import type { AgentDb } from "./link/agent-db.ts";
import type { AgentSettings } from "./settings/fields.ts";

const documentKey = "images_day";
/** The processor time that a picture may take, and its time by the clock on a host that is busy. */
const pictureMs = 20_000;
const waitMs = 60_000;

export type ImageParts = Instruments & {
  readonly db: AgentDb;
  readonly now: () => Date;
};

export function openImages(
  settings: EncoderSettings,
  { db, now, ...common }: ImageParts,
): ImageDesk {
  const store = {
    read: () => db.get(documentKey),
    write: ({ day, spent }: { day: string; spent: Readonly<Record<string, number>> }) =>
      db.put({ [documentKey]: { day, spent } }),
  };
  return new ImageDesk({
    encoder: settings["images.encoder"]
      ? openEncoder(settings)
      : "images.encoder is false in the settings of this host",
    budget: new DayBudget(store, now),
    ...common,
  });
}

type EncoderSettings = Pick<AgentSettings, "images.encoder" | "images.memory_max">;

/** The process starts with the first picture, and may take `startMs` for that. */
export function openEncoder(
  settings: Pick<AgentSettings, "images.memory_max">,
  startMs?: number,
): EncoderProcess {
  return new EncoderProcess({
    entry: entryUrl(import.meta.url, "./picturer"),
    memoryMaxBytes: settings["images.memory_max"],
    pictureMs,
    waitMs,
    startMs,
  });
}

/** Whether what the encoder needs is installed beside this program. Whether it runs on this host is not looked at. */
export function hasLibrary(): boolean {
  try {
    createRequire(import.meta.url).resolve("sharp");
    return true;
  } catch {
    return false;
  }
}
