// The requests that a filter finds, the newest first; while they are followed, what arrives comes in above.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { RequestEntry, Requests } from "../../wire/customer/requests.ts";
import { askPage, Refusal, withQuery, refusalFrom } from "../api.ts";
import { cacheWords } from "../cache-words.ts";
import { requestsPath, type Filter } from "../logs-filter.ts";
import { visibleText } from "../visible-text.ts";
import { seconds } from "../words.ts";
import { Badge, Button, Note, Table, Time, type Tone } from "./pieces.tsx";

const pageRecords = 100;
const followMs = 2_000;
/** Whoever follows a busy site sees the newest of it; the others are in the logs. */
const followedMost = 1_000;

type Found = {
  readonly requests: readonly RequestEntry[];
  readonly scannedUntil: number | undefined;
  readonly next: string | undefined;
};

type Searching = Found & {
  readonly isBusy: boolean;
  readonly failure: Refusal | undefined;
  readonly older: (() => void) | undefined;
};

const nothing: Found = { requests: [], scannedUntil: undefined, next: undefined };

function useRequests(path: string, isFollowing: boolean): Searching {
  const [found, setFound] = useState<Found>(nothing);
  const [failure, setFailure] = useState<Refusal>();
  const [isBusy, setBusy] = useState(true);
  const cursor = useRef<string>(undefined);

  const load = async (
    from: string,
    signal: AbortSignal,
    take: (page: Requests, next?: string) => void,
  ): Promise<void> => {
    setBusy(true);
    try {
      const { value, next } = await askPage<Requests>(from, signal);
      if (signal.aborted) return;
      take(value, next);
      setFailure(undefined);
    } catch (error) {
      if (!signal.aborted) setFailure(refusalFrom(error));
    } finally {
      if (!signal.aborted) setBusy(false);
    }
  };
  const current = useRef(new AbortController());
  useEffect(() => {
    const controller = new AbortController();
    current.current = controller;
    setFound(nothing);
    void load(
      path,
      controller.signal,
      ({ requests, scanned_until: scannedUntil, follow }, next) => {
        cursor.current = follow;
        setFound({ requests, scannedUntil, next });
      },
    );
    return () => controller.abort();
  }, [path]);
  useEffect(() => {
    if (!isFollowing) return undefined;
    const { signal } = current.current;
    let isAsking = false;
    const timer = setInterval(() => {
      if (isAsking || cursor.current === undefined || signal.aborted) return;
      isAsking = true;
      void load(withQuery(path, { follow: cursor.current }), signal, ({ requests, follow }) => {
        cursor.current = follow;
        setFound((before) => ({
          ...before,
          requests: [...requests.toReversed(), ...before.requests].slice(0, followedMost),
        }));
      }).finally(() => {
        isAsking = false;
      });
    }, followMs);
    return () => clearInterval(timer);
  }, [isFollowing, path]);

  const { requests, next } = found;
  const older = (): void => {
    if (next === undefined) return;
    void load(next, current.current.signal, (page, further) =>
      setFound({
        requests: [...requests, ...page.requests],
        scannedUntil: page.scanned_until,
        next: further,
      }),
    );
  };
  return { ...found, isBusy, failure, older: next === undefined ? undefined : older };
}

export function RequestsTable({
  domain,
  filter,
  isFollowing,
  onOpen,
}: {
  readonly domain: string;
  readonly filter: Filter;
  readonly isFollowing: boolean;
  readonly onOpen: (id: string) => void;
}): JSX.Element {
  const { requests, scannedUntil, isBusy, failure, older } = useRequests(
    requestsPath(domain, filter, pageRecords),
    isFollowing,
  );
  // Who asked for one request wants to read it.
  const [found] = requests;
  const alone = filter.id === undefined ? undefined : found?.request_id;
  useEffect(() => {
    if (alone !== undefined) onOpen(alone);
  }, [alone, onOpen]);
  return (
    <div aria-busy={isBusy}>
      {failure !== undefined && <Note tone="bad">{failure.message}</Note>}
      {requests.length === 0 && failure === undefined && (
        <p class="quiet">
          {isBusy
            ? "Looking …"
            : older === undefined
              ? "None was found."
              : "None was found so far."}
        </p>
      )}
      {requests.length > 0 && (
        <Table
          caption="Requests"
          heads={["When", "Status", "", "Request", "Cache", "Verdict", "Origin", "All", "Address"]}
        >
          {requests.map((request) => (
            <RequestRow key={request.request_id} request={request} onOpen={onOpen} />
          ))}
        </Table>
      )}
      {older !== undefined && (
        <p>
          <Button disabled={isBusy} onClick={older}>
            Older ones
          </Button>{" "}
          {scannedUntil !== undefined && scannedUntil > 0 && (
            <span class="quiet">
              looked back to <Time at={scannedUntil} />
            </span>
          )}
        </p>
      )}
    </div>
  );
}

function statusTone(status: number): Tone {
  return status >= 500
    ? "bad"
    : status >= 400
      ? "warn"
      : status >= 200 && status < 300
        ? "good"
        : "plain";
}

function RequestRow({
  request,
  onOpen,
}: {
  readonly request: RequestEntry;
  readonly onOpen: (id: string) => void;
}): JSX.Element {
  const {
    request_id: id,
    when,
    status,
    method,
    authority,
    path,
    query,
    cache,
    verdict,
    reason,
  } = request;
  return (
    <tr>
      <td>
        <Time at={when} />
      </td>
      <td>
        <Badge tone={statusTone(status)}>{status}</Badge>
      </td>
      <td>
        <Button onClick={() => onOpen(id)} label={visibleText(`Open ${method} ${path}`)}>
          Open
        </Button>
      </td>
      <td class="long mono">
        {visibleText(`${method} ${authority}${path}${query === undefined ? "" : `?${query}`}`)}
      </td>
      <td>{cacheWords(cache)}</td>
      <td>
        {verdict} <span class="quiet">{reason}</span>
      </td>
      <td>{request.backend_seconds === 0 ? "–" : seconds(request.backend_seconds)}</td>
      <td>{seconds(request.total_seconds)}</td>
      <td class="mono">{request.client_address}</td>
    </tr>
  );
}
