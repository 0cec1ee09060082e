//! The specified examples, the near misses of each pattern, and what holds for any text.

use proptest::prelude::*;

use super::*;

/// Returns the non-empty lines as messages.
fn each(lines: &str) -> impl Iterator<Item = &str> {
    lines.lines().map(str::trim).filter(|line| !line.is_empty())
}

/// docs/spec/skills-and-signals.md#signals: each example.
#[test]
fn the_specified_examples() {
    assert!(classify_gratitude("Thank you!"));
    assert!(!classify_gratitude("Thanks but that's not right"));
    assert!(!classify_gratitude("No thanks"));
    assert!(classify_gratitude("Perfect, exactly what I needed"));
    assert!(!classify_gratitude("Can you also check the weather?"));

    assert!(classify_repetition("what's the weather today", "tell me today's weather"));
    assert!(!classify_repetition("what's for dinner", "what's the weather"));
    assert!(classify_repetition("check my calendar", "check my calendar"));

    assert!(classify_frustration("That's wrong, try again"));
    assert!(!classify_frustration("Actually I meant next Tuesday"));
    assert!(!classify_frustration("Okay, now send it to John"));
}

/// docs/spec/skills-and-signals.md#gratitude, #frustration: every pattern.
#[test]
fn the_specified_patterns() {
    let gratitude = "thank you, thanks, thx, ty, perfect, great job, awesome, \
                     exactly what i needed, love it, nice";
    for said in gratitude.split(", ") {
        assert!(classify_gratitude(said), "{said}");
        assert!(classify_gratitude(&said.to_uppercase()), "{said}");
        assert!(!classify_frustration(said), "{said}");
    }
    let frustration = "that's wrong, no that's not, you misunderstood, try again, \
                       not what i asked, still wrong, ugh, come on, wtf, seriously?";
    for said in frustration.split(", ") {
        assert!(classify_frustration(said), "{said}");
        assert!(classify_frustration(&said.to_uppercase()), "{said}");
        assert!(classify_frustration(&said.replace('\'', "’")), "{said}");
        assert!(!classify_gratitude(said), "{said}");
    }
}

/// docs/spec/skills-and-signals.md#gratitude, on word boundaries.
#[test]
fn gratitude() {
    for said in each(
        "thank u so much
        Many thanks for the quick fix!
        ok thanks
        tysm
        Yes, thank you.
        I can't thank you enough
        fixed the config...thanks
        No, that worked. Thanks!
        **Thanks**
        (ty)
        thanks to you it works
        I really appreciate your help
        much appreciated!

        This is perfect.
        that's awesome
        It’s really nice
        looks nice
        that looks great
        Great! Can you also test it?
        Nice fix
        ok perfect now add tests
        Oh, nice
        works perfect
        that’s a nice touch
        You did a great job
        good work
        excellent work
        what a great job
        I love it
        we really love it!
        this is exactly what I needed
        just what I wanted",
    ) {
        assert!(classify_gratitude(said), "{said}");
    }
}

/// docs/spec/skills-and-signals.md#gratitude: not on "no thanks" or "thanks but".
#[test]
fn gratitude_that_is_refused_denied_or_taken_back() {
    for said in each(
        "no, thanks
        No thank you
        nope thx
        don't thank me
        thanks for nothing
        not perfect
        that's not great job
        it isn’t nice
        not exactly what I needed
        this is far from perfect
        I don't love it
        Thanks, but it still fails
        thanks for the fix, however it crashes
        I appreciate it, but no
        Nice! But the tests fail
        thanks in advance
        nice try",
    ) {
        assert!(!classify_gratitude(said), "{said}");
    }
}

#[test]
fn what_is_wished_for_is_not_praised() {
    for said in each(
        "it would be nice to have a log
        that would be great
        make it nice
        create a nice landing page
        use a great font
        is this perfect?
        make sure it's perfect
        I'd love it if you could
        nice to have
        does it look nice
        do a great job
        I would appreciate a log
        help would be much appreciated",
    ) {
        assert!(!classify_gratitude(said), "{said}");
    }
}

#[test]
fn words_that_only_look_like_gratitude() {
    for said in each(
        "thanks to the cache it is fast
        add a thank you page
        thank the user in the footer
        the type of city
        a perfect hash
        unperfect
        nicely
        in Nice
        nice.py
        /thanks
        font-awesome
        ty_config
        label it \"Thanks\"
        the job
        what I needed was sleep",
    ) {
        assert!(!classify_gratitude(said), "{said}");
    }
    assert!(!classify_gratitude("```\nthanks\n```"));
}

/// docs/spec/skills-and-signals.md#frustration.
#[test]
fn frustration() {
    for said in each(
        "that is wrong
        thats wrong
        No, this is completely wrong
        it's still wrong
        I think that's wrong
        No. That’s not it
        nope, that isn't right
        no that is not what I want
        you've misunderstood me
        You completely misunderstood
        please try again
        No. Try again!
        That's not what I asked for
        this isn't what I wanted
        you didn't do what I asked
        Still doesn't work
        it’s still not working
        still broken
        it still fails
        Still the same error
        still getting an error
        Ughhh
        FFS
        oh come on
        c’mon!
        what the hell is this
        Seriously?!
        seriously??
        This is annoying, use npm
        it is being really annoying
        I'm so frustrated
        I am very unhappy with this",
    ) {
        assert!(classify_frustration(said), "{said}");
    }
}

/// docs/spec/skills-and-signals.md#frustration: polite corrections are none.
#[test]
fn what_only_looks_like_frustration() {
    for said in each(
        "actually I meant the other
        No, use the second one instead
        no, that's not necessary
        no that is not a problem
        sorry if you misunderstood
        tell me if that's wrong
        tell me if it's still wrong
        fix the test that's wrong
        what is wrong
        what the code does
        not wrong
        I asked what I wanted
        did what I asked
        is it still there
        still to do
        I still have the file
        let it try again
        please try again later
        users can try again
        a \"try again\" button
        the lights come on
        through
        wtf.txt
        seriously consider it
        I am serious?
        fix the annoying bug
        users are frustrated
        it would be annoying",
    ) {
        assert!(!classify_frustration(said), "{said}");
    }
    assert!(!classify_frustration("```\nTry again\n```"));
}

/// docs/spec/skills-and-signals.md#repetition.
#[test]
fn repetition() {
    for (current, previous, expected) in [
        ("run it", "Run it!", true),
        ("no, sort by DATE", "sort it by date", true),
        ("don’t delete the file", "do not delete the file", true),
        ("sort by name", "filter by date", false),
        // Half of the words, which is the threshold; less; and more.
        ("sort by name", "sort by date", true),
        ("sort these by name", "sort those by date", false),
        ("sort these by name", "sort these by date", true),
        ("", "", false),
        ("please do", "please do", false),
        // An answer says again what it agrees to.
        ("Yes, cancel 59XX6W.", "Cancel 59XX6W now, please.", false),
        ("continue", "continue", false),
    ] {
        assert_eq!(classify_repetition(current, previous), expected, "{current} | {previous}");
    }
}

/// docs/spec/skills-and-signals.md#signals-of-a-message: what it returns.
#[test]
fn all_signals() {
    let signals = classify_signals("Thanks! Seriously?", None, Some("s1"));
    let expected = MessageSignals {
        // Thanks before a complaint are manners.
        gratitude: false,
        repetition: None,
        frustration: true,
        skill_version_id: Some("s1".to_owned()),
    };
    assert_eq!(signals, expected);
    assert!(signals.has_any());
    let signals = classify_signals("run it", Some("Run it!"), None);
    assert_eq!(signals.repetition, Some(true));
    assert!(signals.has_any());
    assert!(!classify_signals("run it", Some("sort it"), None).has_any());
}

#[test]
fn only_the_ends_of_a_long_message_are_looked_at() {
    let filler = "word ".repeat(MAX_EXAMINED_BYTES);
    assert!(classify_gratitude(&format!("thanks {filler}")));
    assert!(classify_gratitude(&format!("{filler}. Thanks")));
    assert!(!classify_gratitude(&format!("{filler}. Thanks. {filler}")));
    // Neither end begins or ends within a word: no "ty" of "type", no "ugh" of "through".
    for shift in 0..8 {
        let head =
            format!("{} type {filler}", "a ".repeat(MAX_EXAMINED_BYTES / 2).split_at(shift).1);
        assert!(!classify_gratitude(&head), "{shift}");
        let tail =
            format!("{filler} through {}", "a ".repeat(MAX_EXAMINED_BYTES / 2).split_at(shift).1);
        assert!(!classify_frustration(&tail), "{shift}");
    }
}

/// Thanks, praise, new tasks and answers after work, each near the words of an objection.
const FRIENDLY: &str = "
    # Next task\n\nAdd a page for the error (see errors.rs) and a link in the footer.
    # Offline mode\n\nWhen the server returns an error: show a toast.
    [nit] rename Error(x) to Failure(x) please
    $ cargo test\ntest parse::error(1) ... ok\ntest result: ok. 12 passed; 0 failed
    great, you added tests too
    nice, you kept it short
    thanks, you used the right one
    you did it!
    you made it work!
    you missed nothing
    you haven't broken anything
    i don't see any errors
    i can't find any bugs, merging
    the build is still green
    it is still passing
    it didn't crash
    nothing broke
    sorry, i meant friday
    sorry, wrong window
    as i said, great job!
    no, the rest is perfect
    no, the defaults are good
    es fehlt nichts, super gemacht
    du hast nichts übersehen
    nein, die tests sind gut
    ce n'est pas grave
    les tests sont toujours verts
    sigue el plan
    no, el resto está perfecto
    nic nie brakuje
    опять отличная работа
    エラーが出ていません
    the error is gone now, thanks!
    the flicker is gone, great
    it no longer crashes, thanks!
    now it works without errors, thanks!
    now everything works and nothing is broken, great
    i got no errors, thanks
    great, it returns 404 instead of 500 now
    it returns 404 as expected, perfect
    it uses less memory than before, nice
    much faster after your change, thanks
    you removed 400 lines, impressive
    der fehler ist weg, danke!
    ya no aparece el error, gracias
    ça n'affiche plus d'erreur, merci
    ошибка пропала, спасибо
    错误不见了，谢谢
    エラーは出ません、ありがとう
    the error is gone
    the flicker disappeared
    it no longer crashes
    it runs without errors
    no errors anymore
    nein, das war alles, danke
    non, c'est tout, merci
    no, eso es todo, gracias
    não, é só isso, obrigado
    nie, to wszystko, dzięki
    нет, это всё, спасибо
    还不错，继续
    merci, c'est encore mieux
    ich wollte nur danke sagen
    jetzt fehlt nur noch die doku
    if you find errors, fix them
    once you have fixed the errors, commit
    close the issue
    close the dialog on escape
    almost there, keep going!
    now the error page
    more error handling please
    new issue: add csv export
    wait, i have one more idea
    wait, that's awesome
    the server is up. try again
    redo the benchmark with 8 threads
    why is there a mutex in the cache?
    why does the cache only live 5 minutes?
    too good, thanks!
    nothing else to change, thanks!
    that shouldn't be a problem, go ahead
    i just gave you access to the repo
    great, i wanted exactly this
    same as before but for postgres
    thanks, works!\\n\\nnow write the asserts
    now the cli:\\n- exit with code 2 on bad input
    src/db.rs:42 should return an error: not found
    now the import:\\n- show a message if the server timed out
    верни 404, если пользователя нет
    撤销功能也要加上
    元に戻すボタンを追加して
    the crash is fixed, nice work
    that warning disappeared, thanks
    all green now, no warnings, great
    the bug is fixed, now the next one
    works now, no more flickering
    builds cleanly without warnings now
    the tests pass again, thanks
    it starts twice as fast now, lovely
    no more errors in the log, next task please
    perfect, nothing is missing
    you fixed it, thank you!
    that's better than before, good job
    i like that you removed the duplication
    ok it shows the right total instead of zero now, thank you
    now add a page for 404 errors
    the error page should have a link to the start page
    once the tests are green, open a pull request
    if it fails on ci, retry once
    when i press escape the dialog should close
    wait, let me check the docs
    hold on, i'll restart the server
    why is the limit 10?
    why does the parser use two passes?
    redo icon in the toolbar next to undo, please
    different errors need different exit codes
    too many words, but fine, go on
    i just asked my colleague, he agrees
    add a retry if the request timed out
    next:\\n- fail with an error if the file is missing\\n- add a test
    now handle these:\\n- upload failed to start\\n- assert the size
    wrong passwords should lock the account
    danke, jetzt ist nichts mehr kaputt
    super, das problem ist verschwunden
    nein, das reicht so, danke
    der fehler tritt nicht mehr auf
    mach weiter, die tests fehlen noch
    merci, plus aucune erreur
    parfait, le bug a disparu
    non merci, c'est bon
    continue, il manque plus que les tests
    gracias, ahora no falla nada
    no, nada más, gracias
    perfecto, el error desapareció
    ahora solo falta la documentación
    obrigado, o erro sumiu
    não, está ótimo assim, obrigado
    agora só falta a documentação
    dzięki, błąd zniknął
    nie, to wystarczy, dzięki
    teraz brakuje już tylko dokumentacji
    спасибо, больше не падает
    нет, это не нужно, спасибо
    отлично, теперь ошибки нет
    отмени подписку пользователя при удалении
    верни список, а не словарь
    谢谢，不再报错了
    很好，没有问题了
    恢复到首页的按钮加一下
    撤回消息的功能也需要
    ありがとう、もうエラーは出ません
    いいですね、バグが消えました
    元に戻す機能もお願いします
    完璧です、問題ありません
    i will test it tomorrow, looks good
    error pages are next
    keep the old name as well, please
    thanks a lot! please also add a test for the empty list
    looks good. next, the broken links page
    i see, then let's use sqlite
    i don't want to block you, go on
    sorry, i was wrong, it works
    my bad, i had the wrong branch
    now let's do the missing tests
    do the same for the other errors
    warum ist das so gebaut?
    warum hast du sqlite genommen?
    gut, weiter mit den tests
    kannst du noch die fehlenden tests schreiben
    il reste encore les tests
    on a encore le temps
    c'est pas grave, continue
    eu queria também um botão de busca
    agora adicione a página de erro
    wciąż są wakacje, mamy czas
    опять ты меня выручил, спасибо
    нет, спасибо
    没有变化就好
    少了很多代码，不错
    忘了说，要用 utf-8
    不是问题
    次はエラーページを追加してください
    いいえ、大丈夫です
";

#[test]
fn friendly_messages_and_new_tasks_do_not_object() {
    let request = RequestWords::from_message("mend the flicker and the error of the cache");
    let worked = AgentTurn { has_worked: true, ..AgentTurn::default() };
    let asked = AgentTurn { has_asked: true, ..worked };
    let objection = |message: &str, turn| classify_objection(message, Some(&request), turn).0;
    let messages = each(FRIENDLY).map(|line| line.replace("\\n", "\n"));
    let misread: Vec<String> =
        messages.filter(|message| objection(message, worked).is_some()).collect();
    assert_eq!(misread, Vec::<String>::new());
    for answer in ["not locally, only on ci", "no, in the header", "nein, in der datei"] {
        assert_eq!(objection(answer, asked), None, "{answer}");
        assert!(objection(answer, worked).is_some(), "{answer}");
    }
}

/// The same faults without thanks, or with thanks that are taken back.
#[test]
fn objections_near_friendly_messages_are_found() {
    let request = RequestWords::from_message("add a toggle to the sidebar");
    let worked = AgentTurn { has_worked: true, ..AgentTurn::default() };
    for line in each(
        "thanks, but it is still broken
        you did it again
        it is still passing null
        $ pytest\\nE       TypeError: x\\n3 failed, 0 errors
        now the sidebar is empty
        now i get an error when i save
        almost, but the margin is off
        when i click save nothing happens
        way too slow
        wait, why did that change
        try again
        nein, nicht in der datei
        non, pas dans ce fichier
        нет, в другом файле
        верни всё обратно
        请把它恢复到之前的状态
        元に戻してください
        annule ça s'il te plaît
        i get this:\\nTypeError: x is undefined\\n    at foo (a.js:3)
        src/a.rs:3:5: error[E0308]: mismatched types",
    ) {
        let message = line.replace("\\n", "\n");
        assert!(classify_objection(&message, Some(&request), worked).0.is_some(), "{message}");
    }
}

/// Texts with words that matter in them.
fn message() -> impl Strategy<Value = String> {
    let words = "thanks|Thank you|no|but|perfect|nice|isn't|that's|not|wrong|what i asked|\
                 try again|ugh|seriously|is|a|you|job|great|still|```|\"|\n";
    let between = prop::sample::select(vec![" ", ", ", ". ", "? ", "-", ""]);
    let piece = prop::sample::select(words.split('|').collect::<Vec<_>>());
    let known = prop::collection::vec((piece, between), 0..12)
        .prop_map(|parts| parts.iter().flat_map(|(one, two)| [*one, *two]).collect());
    prop_oneof![known, any::<String>()]
}

proptest! {
    #[test]
    fn neither_case_nor_the_kind_of_apostrophe_counts(text in message(), previous in message()) {
        let signals = classify_signals(&text, Some(&previous), None);
        prop_assert_eq!(signals.gratitude, classify_gratitude(&text));
        prop_assert_eq!(signals.frustration, classify_frustration(&text));
        prop_assert_eq!(signals.repetition, Some(classify_repetition(&text, &previous)));
        for other in [text.replace('\'', "’"), text.to_ascii_uppercase(), text.to_ascii_lowercase()] {
            // An apostrophe of more bytes moves what is looked at of a long message.
            prop_assume!(other.len() <= 2 * MAX_EXAMINED_BYTES);
            prop_assert_eq!(&classify_signals(&other, Some(&previous), None), &signals);
        }
    }

    #[test]
    fn a_message_of_any_length_is_looked_at(unit in any::<String>(), times in 0..2000_usize) {
        let text = unit.repeat(times.min(20_000 / unit.len().max(1)));
        classify_signals(&text, Some(&text), None);
    }
}
