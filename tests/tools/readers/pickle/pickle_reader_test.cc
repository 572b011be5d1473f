#include "strata/tools/readers/pickle/pickle_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "strata/tests/tools/readers/pickle/pickle_text.h"
#include "strata/tests/tools/temp_file.h"
#include "strata/tools/trace/trace.h"

namespace strata::tools {
namespace {

using PickleKind = PickleValue::Kind;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// A literal with zero bytes.
template <std::size_t kSize>
std::string Bytes(const char (&text)[kSize]) {
  return {text, kSize - 1};
}

PickleTree Unpickled(const std::string& content,
                     const PickleOptions& options = {}) {
  InputBuffer input("test.pickle", content);
  return ReadPickle(input, options);
}

// The value that the opcodes produce.
PickleTree ReadOpcodes(const std::string& opcodes,
                       const PickleOptions& options = {}) {
  return Unpickled("\x80\x04" + opcodes + ".", options);
}

// The error of a read, without the path.
std::string PickleError(const std::string& content,
                        const PickleOptions& options = {}) {
  try {
    Unpickled(content, options);
  } catch (const TraceError& error) {
    const std::string what = error.what();
    EXPECT_THAT(what, StartsWith("test.pickle: "));
    return what.substr(13);
  }
  return "";
}

std::string ErrorOfOpcodes(const std::string& opcodes) {
  return PickleError("\x80\x04" + opcodes + ".");
}

void ExpectInt(const std::string& opcodes, PickleKind kind,
               std::uint64_t number) {
  const PickleValue value = ReadOpcodes(opcodes).root();
  EXPECT_EQ(value.kind, kind) << opcodes;
  EXPECT_EQ(value.number, number) << opcodes;
}

TEST(PickleReaderTest, ReadsIntsOfEveryWidth) {
  ExpectInt("K\xff", PickleKind::kUnsigned, 255);
  ExpectInt("M\xff\xff", PickleKind::kUnsigned, 65535);
  ExpectInt(Bytes("J\x01\x00\x00\x7f"), PickleKind::kUnsigned, 0x7f000001);
  ExpectInt("J\xff\xff\xff\xff", PickleKind::kNegative, UINT64_MAX);
  ExpectInt(Bytes("\x8a\x00"), PickleKind::kUnsigned, 0);
  ExpectInt("\x8a\x01\xfe", PickleKind::kNegative, UINT64_MAX - 1);
  ExpectInt(Bytes("\x8b\x02\x00\x00\x00\x00\x80"), PickleKind::kNegative,
            UINT64_MAX - 0x7fff);
}

TEST(PickleReaderTest, TellsIntsThat64BitsHoldFromLargerOnes) {
  const std::string ones(8, '\xff');
  const std::string zeros(8, '\0');
  ExpectInt("\x8a\x09" + ones + '\0', PickleKind::kUnsigned, UINT64_MAX);
  ExpectInt("\x8a\x09" + zeros + '\x01', PickleKind::kHuge, 0);
  ExpectInt("\x8a\x09" + ones + '\xfe', PickleKind::kHuge, 0);
  ExpectInt("\x8a\x08" + zeros.substr(1) + '\x80', PickleKind::kNegative,
            std::uint64_t{1} << 63);
  ExpectInt("\x8a\x09" + zeros.substr(1) + "\x7f\xff", PickleKind::kHuge, 0);
  ExpectInt("\x8a\x20" + zeros + zeros + zeros + zeros, PickleKind::kHuge, 0);
}

TEST(PickleReaderTest, ReadsScalarsOfOtherKinds) {
  EXPECT_EQ(ReadOpcodes("N").root().kind, PickleKind::kNone);
  ExpectInt("\x88", PickleKind::kBool, 1);
  ExpectInt("\x89", PickleKind::kBool, 0);
  EXPECT_EQ(ReadOpcodes("G12345678").root().kind, PickleKind::kFloat);
  EXPECT_EQ(ReadOpcodes("C\x03"
                        "abc")
                .root()
                .kind,
            PickleKind::kBytes);
  EXPECT_EQ(ReadOpcodes(Bytes("B\x03\x00\x00\x00"
                              "abc"))
                .root()
                .kind,
            PickleKind::kBytes);
}

TEST(PickleReaderTest, ReadsTextsOfEveryLengthField) {
  for (const std::string& opcodes :
       {Bytes("\x8c\x02hi"), Bytes("X\x02\x00\x00\x00hi"),
        Bytes("\x8d\x02\x00\x00\x00\x00\x00\x00\x00hi")}) {
    const PickleTree tree = ReadOpcodes(opcodes);
    ASSERT_EQ(tree.root().kind, PickleKind::kText);
    EXPECT_EQ(tree.Text(tree.root()), "hi");
  }
}

TEST(PickleReaderTest, EqualTextsAreKeptOnce) {
  const PickleTree tree = ReadOpcodes("](\x8c\x02hi\x8c\x02ho\x8c\x02hie");
  const auto& items = tree.Items(tree.root());
  EXPECT_EQ(items.at(0).number, items.at(2).number);
  EXPECT_NE(items.at(0).number, items.at(1).number);
}

TEST(PickleReaderTest, TextMayCrossTheBuffer) {
  const std::string text(700'000, 'x');
  const TempFile file(".pickle");
  file.WriteGzip(PickleOf({{"key", text}}));
  InputBuffer input(file.path());
  PickleOptions options;
  options.keys = {"key"};
  const PickleTree tree = ReadPickle(input, options);
  EXPECT_EQ(tree.Text(*tree.Find(tree.root(), "key")), text);
}

TEST(PickleReaderTest, ListsAndTuplesKeepTheOrderOfTheirItems) {
  for (const std::string& opcodes :
       {Bytes("]K\x01"
              "aK\x02"
              "aK\x03"
              "a"),
        Bytes("](K\x01K\x02K\x03"
              "e"),
        Bytes("(K\x01K\x02K\x03l"), Bytes("(K\x01K\x02K\x03t"),
        Bytes("K\x01K\x02K\x03\x87")}) {
    const PickleTree tree = ReadOpcodes(opcodes);
    std::vector<std::uint64_t> numbers;
    for (const PickleValue item : tree.Items(tree.root())) {
      numbers.push_back(item.number);
    }
    EXPECT_THAT(numbers, ::testing::ElementsAre(1, 2, 3)) << opcodes;
  }
}

TEST(PickleReaderTest, LastValueOfAKeyCounts) {
  PickleOptions options;
  options.keys = {"a"};
  const PickleTree tree = ReadOpcodes(
      "}\x8c\x01"
      "aK\x01s\x8c\x01"
      "aK\x02s",
      options);
  EXPECT_EQ(tree.Find(tree.root(), "a")->number, 2U);
  EXPECT_EQ(tree.Find(tree.root(), "b"), nullptr);
}

TEST(PickleReaderTest, KeepsOnlyTheKeysAskedFor) {
  PickleOptions options;
  options.keys = {"kept"};
  options.counted_keys = {"counted"};
  const PickleTree tree =
      Unpickled(PickleOf({{"kept", {1, 2}},
                          {"counted", {3, 4, 5}},
                          {"other", std::vector<int>(1, 6)}}),
                options);
  EXPECT_EQ(tree.Items(tree.root()).size(), 4U);
  EXPECT_EQ(tree.Items(*tree.Find(tree.root(), "kept")).size(), 2U);
  const PickleValue counted = *tree.Find(tree.root(), "counted");
  EXPECT_TRUE(tree.Items(counted).empty());
  EXPECT_EQ(tree.DroppedItems(counted), 3U);
}

TEST(PickleReaderTest, SharedListIsCountedAlikeEachTime) {
  PickleOptions options;
  options.keys = {"a"};
  options.counted_keys = {"b"};
  // {"b": [1]} twice; the second list comes from the memo.
  const PickleTree tree = ReadOpcodes(
      "](}\x8c\x01"
      "b]q\x05K\x01"
      "as}\x8c\x01"
      "bh\x05se",
      options);
  for (const PickleValue dict : tree.Items(tree.root())) {
    EXPECT_EQ(tree.DroppedItems(*tree.Find(dict, "b")), 1U);
  }
}

TEST(PickleReaderTest, MemoGivesTheSameValueAgain) {
  for (const std::string& opcodes :
       {Bytes("(]\x94h\x00h\x00t"), Bytes("(]q\x03h\x03h\x03t"),
        Bytes("(]r\x03\x00\x00\x00j\x03\x00\x00\x00h\x03t")}) {
    const PickleTree tree = ReadOpcodes(opcodes);
    const auto& items = tree.Items(tree.root());
    ASSERT_EQ(items.size(), 3U);
    EXPECT_EQ(items[0].number, items[2].number);
  }
}

TEST(PickleReaderTest, PopsAndFramesLeaveNothing) {
  EXPECT_EQ(ReadOpcodes("N(NN1\x88"
                        "0")
                .root()
                .kind,
            PickleKind::kNone);
  EXPECT_EQ(ReadOpcodes("\x95zzzzzzzzN").root().kind, PickleKind::kNone);
}

TEST(PickleReaderTest, DepthCostsNoStack) {
  const int depth = 1'000'000;
  const PickleTree tree =
      ReadOpcodes(std::string(depth, ']') + std::string(depth - 1, 'a'));
  EXPECT_EQ(tree.Items(tree.root()).size(), 1U);
}

TEST(PickleReaderTest, ErrorsNameOffsetAndOpcode) {
  EXPECT_EQ(ErrorOfOpcodes("N0"), "offset 4: STOP (0x2e): the stack is empty");
  EXPECT_EQ(ErrorOfOpcodes("NNR"),
            "offset 4: REDUCE (0x52): reaches outside the file; a snapshot is "
            "plain data");
  EXPECT_EQ(PickleError("\x80\x04NJab"),
            "offset 3: BININT (0x4a): the file ends inside it");
}

TEST(PickleReaderTest, RefusesEveryOpcodeThatIsNotPlainData) {
  for (const char opcode : std::string_view("PQRbcio\x81\x82\x83\x84\x92\x93"
                                            "\x97\x98")) {
    EXPECT_THAT(ErrorOfOpcodes(std::string("NN") + opcode + "\n\n\n"),
                HasSubstr("reaches outside the file"))
        << opcode;
  }
  for (const char opcode : std::string_view("FILSVgp")) {
    EXPECT_THAT(ErrorOfOpcodes(std::string("NN") + opcode + "\n"),
                HasSubstr("is of protocol 0"))
        << opcode;
  }
  for (const char opcode : std::string_view("2\x8f\x90\x91")) {
    EXPECT_THAT(ErrorOfOpcodes(std::string("NN") + opcode),
                HasSubstr("has no place"))
        << opcode;
  }
}

TEST(PickleReaderTest, NamesWhatWouldBeImported) {
  EXPECT_THAT(ErrorOfOpcodes("cos\nsystem\n"), HasSubstr("'os.system'"));
  EXPECT_THAT(ErrorOfOpcodes("\x8c\x02os\x8c\x06system\x93"),
              HasSubstr("STACK_GLOBAL (0x93): 'os.system'"));
}

// --- With objects ----------------------------------------------------------

PickleTree ReadObjects(const std::string& opcodes) {
  PickleOptions options;
  options.keys = {"kept"};
  options.allows_objects = true;
  return ReadOpcodes(opcodes, options);
}

// Each produces exactly one value.
TEST(PickleReaderTest, ObjectsBecomeValuesWithoutContent) {
  for (const std::string& opcodes :
       {Bytes("cos\nsystem\n"), Bytes("\x8c\x02os\x8c\x06system\x93"),
        Bytes("cos\nsystem\n(\x8c\x04"
              "echotR"),
        Bytes("cos\nsystem\n)\x81"), Bytes("cos\nsystem\n)}\x92"),
        Bytes("cos\nsystem\n)\x81}b"), Bytes("(ios\nsystem\n"),
        Bytes("(cos\nsystem\nNo"), Bytes("Pname\n"), Bytes("NQ"),
        Bytes("\x82\x01"), Bytes("\x83\x01\x02"), Bytes("\x84\x01\x02\x03\x04"),
        Bytes("\x97"), Bytes("\x97\x98"), Bytes("\x8f(NN\x90"),
        Bytes("(NN\x91")}) {
    const PickleTree tree = ReadObjects(opcodes);
    EXPECT_EQ(tree.root().kind, PickleKind::kObject) << opcodes;
    EXPECT_GT(tree.objects(), 0U) << opcodes;
  }
}

TEST(PickleReaderTest, ItemsOfAnObjectAreForgotten) {
  // An OrderedDict, and a list of a custom class, filled after their creation.
  for (const std::string& opcodes :
       {Bytes("ccollections\nOrderedDict\n)R(\x8c\x04keptK\x01u"),
        Bytes("cmine\nList\n)R(K\x01K\x02"
              "e")}) {
    EXPECT_EQ(ReadObjects(opcodes).root().kind, PickleKind::kObject);
  }
}

TEST(PickleReaderTest, PlainDataBesideObjectsIsKept) {
  const PickleTree tree = ReadObjects(
      "}(\x8c\x05"
      "other"
      "cos\nsystem\n)R\x8c\x04keptK\x07u");
  EXPECT_EQ(tree.Find(tree.root(), "kept")->number, 7U);
  EXPECT_EQ(tree.objects(), 2U);
  EXPECT_EQ(tree.first_object(),
            "offset 11: GLOBAL (0x63): asks for 'os.system', which is never "
            "made");
}

TEST(PickleReaderTest, DuplicateIsTheSameValue) {
  const PickleTree tree = ReadObjects(
      "K\x07"
      "2\x86");
  EXPECT_EQ(tree.Items(tree.root()).at(1).number, 7U);
}

// An item that would create a cycle is omitted.
TEST(PickleReaderTest, AContainerNeverHoldsItself) {
  const PickleTree tree = ReadObjects(
      "]q\x01K\x07"
      "ah\x01"
      "a");
  EXPECT_EQ(tree.Items(tree.root()).size(), 1U);
  EXPECT_EQ(tree.objects(), 1U);
}

TEST(PickleReaderTest, BytesBehindThePickleAreCountedOrRefused) {
  const std::string pickle = PickleOf({{"kept", 1}});
  EXPECT_THAT(PickleError(pickle + "abc"), HasSubstr("more data after STOP"));
  PickleOptions options;
  options.allows_objects = true;
  const PickleTree tree = Unpickled(pickle + "abc", options);
  EXPECT_EQ(tree.trailing_bytes(), 3U);
  EXPECT_EQ(tree.bytes(), pickle.size() + 3);
}

TEST(PickleReaderTest, BrokenPicklesAreRefusedWithObjectsToo) {
  PickleOptions options;
  options.allows_objects = true;
  for (const std::string& opcodes :
       {Bytes("R"), Bytes("NR"), Bytes("\x93"), Bytes("o"), Bytes("b"),
        Bytes("\x90"), Bytes("2"), Bytes("cos"), Bytes("N\xff"), Bytes("I1\n"),
        Bytes("\x84\x01")}) {
    EXPECT_NE(PickleError("\x80\x04" + opcodes + ".", options), "") << opcodes;
  }
}

TEST(PickleReaderTest, ItemsBelowAMarkAreOutOfReach) {
  EXPECT_THAT(ErrorOfOpcodes("N(\x85"), HasSubstr("the stack is empty"));
  EXPECT_THAT(ErrorOfOpcodes("](Na"), HasSubstr("the stack is empty"));
}

TEST(PickleReaderTest, RefusesEveryWayToACycle) {
  // A list in itself: directly, through a tuple, and through another list,
  // complete or not.
  for (const std::string& opcodes : {Bytes("]q\x01h\x01"
                                           "a"),
                                     Bytes("]q\x01h\x01\x85"
                                           "a"),
                                     Bytes("]q\x01]q\x02h\x01"
                                           "ah\x01h\x02"
                                           "a"),
                                     Bytes("]q\x01]q\x02h\x01"
                                           "aa")}) {
    EXPECT_NE(ErrorOfOpcodes(opcodes), "") << opcodes;
  }
}

TEST(PickleReaderTest, StopsAtTheMemoryLimit) {
  PickleOptions options;
  options.max_bytes = 100'000;
  EXPECT_EQ(PickleError("\x80\x04N" + std::string(1000, '0') + "N.", options),
            "offset 4: POP (0x30): the stack is empty");
  for (const char opcode : std::string_view("N](")) {
    EXPECT_THAT(PickleError("\x80\x04" + std::string(20'000, opcode), options),
                HasSubstr("the values take more than 97.7 KiB"))
        << opcode;
  }
}

TEST(PickleReaderTest, EveryTruncationIsAnError) {
  const std::string whole =
      PickleOf({{"kept", {1, -2, "three"}}, {"other", {{"a", 1}}}});
  PickleOptions options;
  options.keys = {"kept"};
  EXPECT_EQ(PickleError(whole, options), "");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_NE(PickleError(whole.substr(0, i), options), "") << i;
  }
}

TEST(PickleReaderTest, CutOffGzipNamesAnOffset) {
  const TempFile whole(".gz");
  whole.WriteGzip(PickleOf({{"key", std::string(5000, 'x')}}));
  const std::string bytes = whole.Read();
  const TempFile file(".pickle.gz");
  file.Write(bytes.substr(0, bytes.size() - 9));
  InputBuffer input(file.path());
  EXPECT_THAT([&] { ReadPickle(input, {}); },
              ::testing::ThrowsMessage<TraceError>(::testing::AllOf(
                  HasSubstr(": offset "), HasSubstr("cut off here"))));
}

}  // namespace
}  // namespace strata::tools
