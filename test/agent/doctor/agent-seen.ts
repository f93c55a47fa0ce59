// An agent that serves and warns of nothing, as the doctor sees it.

export const answering = {
  kind: "answers",
  isReady: true,
  warnsOf: [],
  link: { state: "connected", error: undefined },
  isEncoderMissed: false,
} as const;
