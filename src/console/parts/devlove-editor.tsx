// The devlove of a version: checked while it is typed, with what the schema says about the place where the cursor is.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { DevloveFile, DevloveVerdict } from "../../wire/customer/devlove-file.ts";
import { at, Refusal, send, refusalFrom } from "../api.ts";
import { useAsked } from "../asked.ts";
import { indented } from "../json-text.ts";
import { useDoing } from "../doing.ts";
import { useDraft } from "../drafts.ts";
import { keysAt } from "../json-place.ts";
import { helpAt, type HelpSchema } from "../schema-help.ts";
import { useMay } from "../session.ts";
import { Button, Confirm, TextField, Note, Panel, RefusalNote } from "./pieces.tsx";

const schema = "devlove/1";
const pauseMs = 400;

export function DevloveEditor({
  domain,
  viewset,
  isActive,
  onStored,
}: {
  readonly domain: string;
  readonly viewset: string | undefined;
  /** What is stored in the active version is activated. */
  readonly isActive: boolean;
  readonly onStored: () => void;
}): JSX.Element {
  const mayWrite = useMay("write");
  const files = useAsked<readonly DevloveFile[]>(
    viewset === undefined ? undefined : at`/${domain}/devlove/${viewset}/`,
    { everyMs: 3_600_000 },
  );
  const file = files.value?.find((one) => one.schema === schema);
  const help = useAsked<HelpSchema>("/devlove-1.schema.json", { everyMs: 3_600_000 });
  const [text, setText] = useDraft(`${domain} ${viewset ?? ""}`);
  const [name, setName] = useState("");
  const [cursor, setCursor] = useState(0);
  const doing = useDoing();
  const shown = text ?? (file === undefined ? emptyDevlove(domain) : indented(file.content));
  const verdict = useVerdict(text === undefined ? undefined : text);
  const store = (): void => {
    void doing.run(async () => {
      const isNew = name !== "" || viewset === undefined || file === undefined;
      await (isNew
        ? send("POST", at`/${domain}/devlove/${name === "" ? (viewset ?? "first") : name}/`, {
            schema,
            content: shown,
          })
        : send("PUT", at`/${domain}/devlove/${viewset}/${file.id}/`, { schema, content: shown }));
      setText(undefined);
      setName("");
      files.again();
      onStored();
    });
  };
  const told = helpAt(help.value, keysAt(shown, cursor));
  return (
    <Panel title={viewset === undefined ? "Devlove" : `Devlove of ${viewset}`}>
      {files.failure !== undefined && <Note tone="bad">{files.failure.message}</Note>}
      <div class="editor">
        <div
          onKeyUp={({ target }) => setCursor(cursorOf(target))}
          onClick={({ target }) => setCursor(cursorOf(target))}
        >
          <TextField label="The document (JSON)" rows={18} value={shown} onInput={setText} />
        </div>
        <aside aria-live="polite">
          <h3>{told.path === "" ? "The document" : told.path}</h3>
          <p>{told.description ?? "Put the cursor on a field to read about it."}</p>
          {told.fields.length > 0 && (
            <dl class="facts">
              {told.fields.map(([field, about]) => (
                <>
                  <dt>
                    <code>{field}</code>
                  </dt>
                  <dd class="quiet">{about}</dd>
                </>
              ))}
            </dl>
          )}
        </aside>
      </div>
      {verdict !== undefined && <Verdict verdict={verdict} />}
      {mayWrite && (
        <div class="row">
          <TextField
            label="Store as a new version"
            value={name}
            onInput={setName}
            placeholder={viewset === undefined ? "first" : "name of the version"}
          />
          <StoreButton
            place={name === "" && file !== undefined ? viewset : undefined}
            isActive={isActive}
            disabled={doing.isBusy || text === undefined}
            onStore={store}
          />
          {text !== undefined && (
            <>
              <Button onClick={() => setText(undefined)}>Discard</Button>
              <span class="quiet">Not stored yet.</span>
            </>
          )}
        </div>
      )}
      <RefusalNote failure={doing.failure} />
    </Panel>
  );
}

/** Stores in a version, which is asked about where every host serves it at once, or as a new one. */
function StoreButton({
  place,
  isActive,
  disabled,
  onStore,
}: {
  /** The version that it is stored in; undefined: a new one. */
  readonly place: string | undefined;
  readonly isActive: boolean;
  readonly disabled: boolean;
  readonly onStore: () => void;
}): JSX.Element {
  if (place === undefined || !isActive)
    return (
      <Button kind="main" disabled={disabled} onClick={onStore}>
        {place === undefined ? "Store as a new version" : `Store in ${place}`}
      </Button>
    );
  return (
    <Confirm
      kind="main"
      question={`Store it in ${place}, which is active? Every host serves it at once.`}
      doIt={`Store in ${place} and activate`}
      disabled={disabled}
      onYes={onStore}
    >
      Store in {place} and activate
    </Confirm>
  );
}

function emptyDevlove(domain: string): string {
  return JSON.stringify(
    { domains: { [domain]: { backend: { urls: ["https://origin.example.com"] } } } },
    null,
    2,
  );
}

function cursorOf(target: EventTarget | null): number {
  return target instanceof HTMLTextAreaElement ? target.selectionStart : 0;
}

function useVerdict(content: string | undefined): DevloveVerdict | Refusal | undefined {
  const [verdict, setVerdict] = useState<DevloveVerdict | Refusal>();
  useEffect(() => {
    if (content === undefined) {
      setVerdict(undefined);
      return undefined;
    }
    const controller = new AbortController();
    const timer = setTimeout(() => {
      send<DevloveVerdict>(
        "POST",
        "/devlove/validate/",
        { schema, content },
        controller.signal,
      ).then(setVerdict, (error: unknown) => {
        if (!controller.signal.aborted) setVerdict(refusalFrom(error));
      });
    }, pauseMs);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [content]);
  return verdict;
}

function Verdict({ verdict }: { readonly verdict: DevloveVerdict | Refusal }): JSX.Element {
  if (verdict instanceof Refusal) return <RefusalNote failure={verdict} />;
  const { errors = [], warnings = [] } = verdict.payload;
  if (errors.length === 0 && warnings.length === 0) return <Note tone="good">It is valid.</Note>;
  return (
    <>
      {errors.length > 0 && <Places tone="bad" places={errors} />}
      {warnings.length > 0 && <Places tone="warn" places={warnings} />}
    </>
  );
}

function Places({
  tone,
  places,
}: {
  readonly tone: "bad" | "warn";
  readonly places: readonly { readonly path: string; readonly message: string }[];
}): JSX.Element {
  return (
    <Note tone={tone}>
      {places.map(({ path, message }) => (
        <div key={`${path} ${message}`}>
          <code>{path === "" ? "/" : path}</code> {message}
        </div>
      ))}
    </Note>
  );
}
