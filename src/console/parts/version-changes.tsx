// What one version would change against another: its files, and its devlove line by line.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { ViewsetChanges } from "../../wire/customer/viewset-changes.ts";
import type { ViewsetVersion } from "../../wire/customer/viewset.ts";
import { at, withQuery } from "../api.ts";
import { useAsked } from "../asked.ts";
import { indented } from "../json-text.ts";
import { diffLines } from "../diff-lines.ts";
import { visibleText } from "../visible-text.ts";
import { byteCount, count, several } from "../words.ts";
import { Answer, Choice, Panel, Table } from "./pieces.tsx";

export function VersionChanges({
  domain,
  id,
  versions,
}: {
  readonly domain: string;
  readonly id: number;
  readonly versions: readonly ViewsetVersion[];
}): JSX.Element {
  const [from, setFrom] = useState("");
  const asked = useAsked<ViewsetChanges>(
    withQuery(at`/active-viewset/${domain}/${id}/changes/`, { from }),
    { topics: ["viewsets"], domain },
  );
  const name = versions.find((one) => one.id === id)?.name ?? String(id);
  return (
    <Panel title={`What ${name} would change`}>
      <div class="row">
        <Choice
          label="Compared with"
          value={from}
          options={[
            ["", "the active version"],
            ...versions
              .filter((one) => one.id !== id)
              .map((one) => [String(one.id), one.name] as const),
          ]}
          onChange={setFrom}
        />
      </div>
      <Answer asked={asked}>
        {({ files, devlove }) => (
          <>
            {files === null ? (
              <p class="quiet">
                There are no files to compare: at least one of them brings none, and is served by
                the backend or from a directory of each host.
              </p>
            ) : (
              <Files files={files} />
            )}
            {devlove.length === 0 && <p class="quiet">The devlove is the same.</p>}
            {devlove.map(({ schema, before, after }) => (
              <Diff
                key={schema}
                title={`Devlove (${schema})`}
                before={before ?? ""}
                after={after ?? ""}
              />
            ))}
          </>
        )}
      </Answer>
    </Panel>
  );
}

function Files({ files }: { readonly files: NonNullable<ViewsetChanges["files"]> }): JSX.Element {
  return (
    <>
      <p>
        {several(files.added, "file")} added, {count(files.changed)} changed, {count(files.removed)}{" "}
        removed, {count(files.same)} the same; {byteCount(files.bytes_before)} before,{" "}
        {byteCount(files.bytes_after)} after.
      </p>
      {files.samples.length > 0 && (
        <Table caption="Files that differ" heads={["File", "", "Before", "After"]}>
          {files.samples.map(({ path, change, bytes_before: before, bytes_after: after }) => (
            <tr key={path}>
              <td class="long mono">{visibleText(path)}</td>
              <td>{change}</td>
              <td>{before === null ? "–" : byteCount(before)}</td>
              <td>{after === null ? "–" : byteCount(after)}</td>
            </tr>
          ))}
        </Table>
      )}
      {files.truncated && <p class="quiet">These are the first {files.samples.length}.</p>}
    </>
  );
}

function Diff({
  title,
  before,
  after,
}: {
  readonly title: string;
  readonly before: string;
  readonly after: string;
}): JSX.Element {
  return (
    <>
      <h3>{title}</h3>
      <pre class="fault">
        {diffLines(indented(before), indented(after)).map(({ kind, text }, no) => (
          <div key={no} class={kind === "added" ? "good" : kind === "removed" ? "bad" : "quiet"}>
            {kind === "added" ? "+ " : kind === "removed" ? "− " : "  "}
            {text}
          </div>
        ))}
      </pre>
    </>
  );
}
