// An encoder that answers what a test says, in the place of the one that makes pictures; and bytes that begin as pictures do.

import type { ImageEncoder, ImageJob, ImageMade } from "../../../src/agent/images/image-encoder.ts";

export class FakeEncoder implements ImageEncoder {
  readonly jobs: ImageJob[] = [];
  /** What comes of a job: by default, a body that names the form, the quality and the length of the source. */
  answer: (job: ImageJob) => ImageMade | Promise<ImageMade> = (job) => made(job);

  async make(job: ImageJob): Promise<ImageMade> {
    this.jobs.push({ ...job, source: job.source.slice() });
    return this.answer(job);
  }

  get forms(): readonly string[] {
    return this.jobs.map(({ form }) => form);
  }
}

export function made({ form, quality, source }: ImageJob): ImageMade {
  return { kind: "made", body: Buffer.from(`${form} q${quality} of ${source.length}`) };
}

const beginnings = {
  "image/jpeg": Buffer.from([0xff, 0xd8, 0xff, 0xe0]),
  "image/png": Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
  "image/webp": Buffer.from("RIFF\0\0\0\0WEBP", "latin1"),
  "image/avif": Buffer.from("\0\0\0\x1cftypavif", "latin1"),
} as const;

export function pictureBytes(type: keyof typeof beginnings, size = 5_000): Buffer {
  const begin = beginnings[type];
  return Buffer.concat([begin, Buffer.alloc(size - begin.length, "picture ")]);
}
