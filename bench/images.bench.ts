// Pictures made smaller: what it saves on real photographs, what it costs, how the forms look, and what visitors feel of it. The photographs are of two packages of Debian
// (bench/images/photographs.ts); `--unpacked` names a directory where they are already. Times are of processors, but for the visitors', which want a host that does
// nothing else.
//
//   npm run bench -- images [--photos N] [--rounds N] [--seconds S] [--rate N] [--only forms|agent] [--unpacked DIRECTORY]

import { parseArgs } from "node:util";
import { EncoderProcess } from "../src/agent/images/encoder-child.ts";
import { measureAgent } from "./images/beside.ts";
import { measureForms } from "./images/forms.ts";
import { photographs } from "./images/photographs.ts";
import { Figures } from "./support/figures.ts";

export async function run(say: (line: string) => void, args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      photos: { type: "string", default: "200" },
      rounds: { type: "string", default: "7" },
      seconds: { type: "string", default: "5" },
      rate: { type: "string", default: "400" },
      only: { type: "string" },
      unpacked: { type: "string" },
    },
  });
  const figures = new Figures(say);
  const photos = await photographs(Number(values.photos), values.unpacked);
  const rounds = {
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    perSecond: Number(values.rate),
  };
  const isAsked = (part: string): boolean => values.only === undefined || values.only === part;
  if (isAsked("forms")) {
    await using encoder = openEncoder();
    await encoder.open();
    await measureForms(encoder, photos, figures);
  }
  if (isAsked("agent")) await measureAgent(photos, figures, rounds);
  if (figures.missed.length > 0) throw new Error(`missed: ${figures.missed.join("; ")}`);
}

function openEncoder(): EncoderProcess {
  return new EncoderProcess({
    entry: new URL("../src/agent/picturer.ts", import.meta.url),
    memoryMaxBytes: 2 ** 30,
    pictureMs: 60_000,
    waitMs: 300_000,
  });
}
