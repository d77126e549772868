-- The session rules of section 2 ("One epoch, a window of sessions", "Check, open, mark", "A second
-- answer", "Nothing old"), for rumur: one agent, its clients, and a relay that keeps every packet
-- and delivers any of them, in any order, any number of times, or never. Cryptography is ideal: a
-- packet exists if its sender sealed it. What is checked, and how to run it: docs/proofs.md.
--
-- Each rule is a constant; the tests set one at a time to false, and expect a trace.

const
  CLIENTS: 2;
  W: 1;                   -- sessions that an epoch stores
  STARTS: 2;
  DATA: 2;                -- packets with data of each direction of a session: a ping, a call
  TIMES: 2;               -- a call must run in the interval in which it was sealed
  EPOCHS: 5;              -- of one boot: 2 CLIENTS + 1, because a move needs a session stored
  ROUNDS: 12;             -- of the fair relay: three times what a client needs

  RAISE: true;            -- the boot count is raised at every start
  MOVE: true;             -- the epoch is moved when it is full
  SPENT: true;            -- the current epoch remembers what it stored
  SPENT_BEFORE: true;     -- so does the one before it
  ERASE: true;            -- an epoch whose spent set is gone stores nothing
  MOVE_SPENT: true;       -- a spent C that is not held moves the epoch before it is answered
  MARK: true;             -- only a greater seq is accepted
  EXPIRES: true;          -- a call that is too late does not run
  HELD: true;             -- a held C is answered with the A of its session, and not stored again
  ABANDON: true;          -- a client gives up its C at another A

type
  P: 1..CLIENTS;
  C: 1..(2 * CLIENTS);    -- one for each client, and one more at the fair relay
  B: 1..STARTS;
  E: 0..(EPOCHS - 1);
  S: 1..DATA;
  S0: 0..DATA;            -- 0: an opening
  T: 1..TIMES;
  A: record boot: B; epoch: E; end;

var
  -- the agent
  starts: B;
  boot: B;
  epoch: E;
  before: boolean;                                    -- the epoch before may store sessions
  stored: 0..(2 * CLIENTS);                           -- by the current epoch, while it is current
  storedBefore: 0..(2 * CLIENTS);                     -- by the epoch before, since it is that
  spent: array[E] of array[C] of boolean;
  held: array[C] of boolean;
  a: array[C] of A;                                   -- of the held session
  received: array[C] of S0;
  sealed: array[C] of S0;
  -- the clients
  c: array[P] of C;                                   -- the C that it uses
  state: array[C] of enum { idle, opening, confirming, open, abandoned };
  accepts: array[C] of A;                             -- the A that it took
  sent: array[C] of S0;
  sealedAt: array[C] of T;                            -- when it sealed its call
  taken: array[C] of S0;                              -- its own mark
  -- the wire, and the time
  answered: array[C] of array[B] of array[E] of boolean;
  wire: array[C] of array[S] of boolean;              -- the agent's data, on the A that C accepts
  now: T;
  -- what was observed
  executed: array[C] of array[S] of boolean;
  twice, reused, late, derivedAgain, tooMany, unserved, over: boolean;

-- Whether a session of C with this A was ever stored: a client uses one A of each C.
function wasStored(x: C; b: B; e: E): boolean;
begin
  return executed[x][1] & accepts[x].boot = b & accepts[x].epoch = e;
end;

procedure forget(x: C);
begin
  held[x] := false;
  clear a[x];
  received[x] := 0;
  sealed[x] := 0;
end;

procedure eraseBefore();
begin
  before := false;
  storedBefore := 0;
  if epoch > 0 then clear spent[epoch - 1]; endif;
end;

procedure moveEpoch();
begin
  if epoch = EPOCHS - 1 then error "EPOCHS is too small"; endif;
  eraseBefore();
  before := true;
  stored := 0;
  epoch := epoch + 1;
end;

-- Step 2: what the agent answers to C, on the wire from then on.
procedure answer(x: C; var b: B; var e: E);
begin
  if held[x] & HELD then
    b := a[x].boot;
    e := a[x].epoch;
  else
    if spent[epoch][x] & MOVE_SPENT then moveEpoch(); endif;
    b := boot;
    e := epoch;
    if wasStored(x, b, e) & !(held[x] & a[x].boot = b & a[x].epoch = e) then
      derivedAgain := true;
    endif;
  endif;
  answered[x][b][e] := true;
end;

-- Check, open, mark; then the answer, whose text differs whenever its session was stored anew.
procedure execute(x: C; s: S);
begin
  if executed[x][s] then twice := true; endif;
  executed[x][s] := true;
  received[x] := s;
  if s > 1 & now > sealedAt[x] & !EXPIRES then late := true; endif;
  if sealed[x] < DATA then
    sealed[x] := sealed[x] + 1;
    if wire[x][sealed[x]] then reused := true; endif;
    wire[x][sealed[x]] := true;
  endif;
end;

-- Whether the A that C uses is from an epoch that may store it, and not spent there.
function storable(x: C): boolean;
begin
  if accepts[x].boot != boot | (held[x] & HELD) then return false; endif;
  if accepts[x].epoch = epoch then return !(SPENT & spent[epoch][x]); endif;
  if accepts[x].epoch + 1 = epoch & before then
    return !(SPENT_BEFORE & spent[accepts[x].epoch][x]);
  endif;
  -- Nothing tells what it stored.
  return !ERASE & accepts[x].epoch < epoch;
end;

procedure store(x: C);
begin
  held[x] := true;
  a[x] := accepts[x];
  received[x] := 0;
  sealed[x] := 0;
  if accepts[x].epoch = epoch then
    spent[epoch][x] := true;
    stored := stored + 1;
    if stored > W then tooMany := true; endif;
    if stored = W & MOVE then moveEpoch(); endif;
  elsif before & accepts[x].epoch + 1 = epoch then
    spent[accepts[x].epoch][x] := true;
    storedBefore := storedBefore + 1;
    if storedBefore = W then eraseBefore(); endif;
  endif;
end;

-- The packet with this seq reaches the agent. `b`, `e`: the A of the answer, if it is one.
procedure toAgent(x: C; s: S0; var isAnswer: boolean; var b: B; var e: E);
begin
  isAnswer := false;
  if s = 0 then
    answer(x, b, e);
    isAnswer := true;
  elsif held[x] & a[x].boot = accepts[x].boot & a[x].epoch = accepts[x].epoch then
    if s > received[x] | !MARK then execute(x, s); endif;
  elsif storable(x) then
    store(x);
    execute(x, s);
  else
    answer(x, b, e);
    isAnswer := true;
  endif;
end;

procedure answerToClient(x: C; b: B; e: E);
begin
  if state[x] = opening then
    state[x] := confirming;
    accepts[x].boot := b;
    accepts[x].epoch := e;
    sent[x] := 1;
  elsif state[x] = confirming | state[x] = open then
    if (accepts[x].boot != b | accepts[x].epoch != e) & ABANDON then state[x] := abandoned; endif;
  endif;
end;

-- The opening of C arrives once more, and its answer goes back.
procedure copyOfOpening(x: C);
var
  b: B;
  e: E;
begin
  answer(x, b, e);
  answerToClient(x, b, e);
end;

-- One round trip of a client at a fair relay. Returns whether its call was answered.
function round(p: P; copies: boolean): boolean;
var
  b: B;
  e: E;
  isAnswer: boolean;
  x: C;
begin
  x := c[p];
  switch state[x]
    case idle:
      state[x] := opening;
    case opening:
      toAgent(x, 0, isAnswer, b, e);
      answerToClient(x, b, e);
    case confirming:
      toAgent(x, 1, isAnswer, b, e);
      if copies then copyOfOpening(x); endif;
      if isAnswer then
        answerToClient(x, b, e);
      elsif state[x] = confirming & received[x] = 1 & sealed[x] = 1 & taken[x] = 0 then
        state[x] := open;
        taken[x] := 1;
      endif;
      -- Otherwise the silence ends it.
      if state[x] = confirming then state[x] := abandoned; endif;
    case open:
      if held[x] & a[x].boot = accepts[x].boot & a[x].epoch = accepts[x].epoch then
        if copies then copyOfOpening(x); endif;
        if state[x] = open then return true; endif;
      else
        answer(x, b, e);
        answerToClient(x, b, e);
      endif;
    case abandoned:
      if x <= CLIENTS then
        c[p] := x + CLIENTS;
        state[x + CLIENTS] := opening;
      endif;
  endswitch;
  return false;
end;

-- Everything is delivered in order, and with `copies` openings twice: is each client served?
function allServed(copies: boolean): boolean;
var
  served: array[P] of boolean;
begin
  clear served;
  for i := 1 to ROUNDS do
    for p: P do
      if !served[p] then served[p] := round(p, copies); endif;
    endfor;
  endfor;
  return forall p: P do served[p] endforall;
end;

procedure clearAgent();
begin
  clear epoch;
  before := false;
  stored := 0;
  storedBefore := 0;
  clear spent;
  for x: C do forget(x); endfor;
end;

procedure clearRest();
begin
  clear starts; clear boot; clear state; clear accepts; clear sent; clear sealedAt; clear taken;
  clear answered; clear wire; clear now; clear executed;
  for p: P do c[p] := p; endfor;
  twice := false; reused := false; late := false; derivedAgain := false; tooMany := false;
end;

startstate "start"
begin
  clearAgent();
  clearRest();
  unserved := false;
  over := false;
end;

ruleset p: P do
  -- Clients are alike, so they open in order.
  rule "open"
    !over & state[p] = idle & (p = 1 | state[p - 1] != idle)
  ==>
  begin
    state[p] := opening;
  end;

  rule "call"
    !over & state[p] = open & sent[p] < DATA
  ==>
  begin
    sent[p] := sent[p] + 1;
    sealedAt[p] := now;
  end;

  rule "forget"
    !over & held[p]
  ==>
  begin
    forget(p);
  end;

  ruleset s: S0 do
    rule "toAgent"
      !over & state[p] != idle & s <= sent[p]
    ==>
    var
      b: B;
      e: E;
      isAnswer: boolean;
    begin
      toAgent(p, s, isAnswer, b, e);
    end;
  endruleset;

  ruleset b: B; e: E do
    rule "answer"
      !over & answered[p][b][e]
    ==>
    begin
      answerToClient(p, b, e);
    end;
  endruleset;

  ruleset s: S do
    rule "data"
      !over & wire[p][s] & (state[p] = confirming | state[p] = open) & s > taken[p]
    ==>
    begin
      taken[p] := s;
      if state[p] = confirming & s = 1 then state[p] := open; endif;
    end;
  endruleset;
endruleset;

rule "restart"
  !over & starts < STARTS
==>
begin
  starts := starts + 1;
  if RAISE then boot := boot + 1; endif;
  clearAgent();
end;

rule "wait"
  !over & now < TIMES
==>
begin
  now := now + 1;
  -- The silence ends what was not confirmed.
  for p: P do
    if state[p] = confirming then state[p] := abandoned; endif;
  endfor;
end;

ruleset copies: boolean do
  rule "fair"
    !over
  ==>
  begin
    if allServed(copies) then
      -- Nothing more to see: one state for all of these.
      clearAgent();
      clearRest();
    else
      unserved := true;
    endif;
    over := true;
  end;
endruleset;

invariant "no packet is accepted twice" !twice;
invariant "no key and nonce seal twice" !reused;
invariant "no call runs after its expires" !late;
invariant "no stored A is derived again" !derivedAgain;
invariant "an epoch stores no more than W while it is current" !tooMany;
invariant "every client is served" !unserved;
